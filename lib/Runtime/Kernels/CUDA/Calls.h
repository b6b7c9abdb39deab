//===- Calls.h - segments' calls on a CUDA device ---------------*- C++ -*-===//
//
// Puts what segments call on the stream that the executor has chosen. Owns what it has
// looked up, and the libraries that multiply and convolve.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CALLS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CALLS_H

#include "Kernels/CUDA/Convolutions.h"
#include "Kernels/CUDA/Products.h"
#include "Kernels/DeviceCalls.h"

#include <memory>
#include <unordered_map>
#include <utility>

namespace dsopt::runtime::cuda {

class Calls final : public DeviceCalls {
public:
  /// The routines that are called have their kernels there. `mayRound`: as Products.
  Calls(Device &device, bool mayRound);

  /// What is called from now on goes there.
  void setStream(StreamHandle chosen) { stream = chosen; }
  StreamHandle currentStream() const { return stream; }
  /// The program's kernel that was launched last, null if none was since this was asked.
  Function takeLaunched() { return std::exchange(launched, nullptr); }
  const Algorithm *takeAlgorithm() { return products.takeAlgorithm(); }

  void launch(const dsopt_device_kernel &kernel, int64_t begin, int64_t end, void *const *args) override;
  void gemm(const dsopt_gemm &product, const void *a, const void *b, void *c, void *workspace,
            bool accumulate) override;
  void gemmPart(const dsopt_gemm_part &part, const void *a, const void *b, const float *addend, void *c,
                void *workspace, bool accumulate) override;
  void gemmEpilogue(const dsopt_gemm_epilogue &product, const void *a, const void *b, const void *given,
                    void *kept, void *c) override;
  void convolution(const dsopt_convolution &convolution, const void *a, const void *b, void *result,
                   void *workspace, bool accumulate) override;
  void linearNll(const dsopt_linear_nll &loss, const void *x, const void *weight, const void *bias,
                 const void *labels, const float *grad, float *losses, void *xGrad, void *weightGrad,
                 void *biasGrad, void *workspace, bool accumulateWeight, bool accumulateBias) override;
  void scatterAdd(const dsopt_scatter_add &scatter, const void *rows, const void *indices, void *result,
                  void *workspace, bool accumulate) override;
  void scatter(const dsopt_scatter &scatter, const void *data, const void *indices, const void *updates,
               void *result) override;
  void ctc(const dsopt_ctc &ctc, const float *logs, const int64_t *targets, const int64_t *inputLengths,
           const int64_t *targetLengths, void *workspace, float *losses) override;
  void ctcGrad(const dsopt_ctc &ctc, const float *logs, const int64_t *targets, const int64_t *inputLengths,
               const int64_t *targetLengths, const float *grad, void *workspace, float *gradient) override;
  void accumulate(int64_t elements, const float *value, void *gradient, int64_t type,
                  bool accumulate) override;
  void attention(const dsopt_attention &d, const AttentionTensors &tensors) override;
  void attentionGrad(const dsopt_attention &d, const AttentionTensors &tensors, void *workspace) override;

private:
  Device &device;
  Products products;
  std::unique_ptr<Convolutions> convolutions; ///< with the first one
  StreamHandle stream = nullptr;
  Function launched = nullptr;
  std::unordered_map<const dsopt_device_kernel *, Function> kernels;
  std::vector<void *> parameters; ///< of a launch
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CALLS_H
