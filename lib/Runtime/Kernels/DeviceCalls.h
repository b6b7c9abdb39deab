//===- DeviceCalls.h - what segments call on a device -----------*- C++ -*-===//
//
// The functions of ABI.h where buffers are a device's: each puts its work behind what was
// issued before and returns. What they compute and which orders are fixed, ABI.h says;
// bits may be others than the host's.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_DEVICECALLS_H
#define DSOPT_LIB_RUNTIME_KERNELS_DEVICECALLS_H

#include "Kernels/AttentionTensors.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Convolution.h"
#include "dsopt/Runtime/Epilogue.h"

namespace dsopt::runtime {

class DeviceCalls {
public:
  virtual ~DeviceCalls() = default;
  /// `[begin, end)` of the kernel's range.
  virtual void launch(const dsopt_device_kernel &kernel, int64_t begin, int64_t end, void *const *args) = 0;
  virtual void gemm(const dsopt_gemm &product, const void *a, const void *b, void *c, void *workspace,
                    bool accumulate) = 0;
  virtual void gemmPart(const dsopt_gemm_part &part, const void *a, const void *b, const float *addend,
                        void *c, void *workspace, bool accumulate) = 0;
  virtual void gemmEpilogue(const dsopt_gemm_epilogue &product, const void *a, const void *b,
                            const void *given, void *kept, void *c) = 0;
  virtual void convolution(const dsopt_convolution &convolution, const void *a, const void *b, void *result,
                           void *workspace, bool accumulate) = 0;
  virtual void linearNll(const dsopt_linear_nll &loss, const void *x, const void *weight, const void *bias,
                         const void *labels, const float *grad, float *losses, void *xGrad, void *weightGrad,
                         void *biasGrad, void *workspace, bool accumulateWeight, bool accumulateBias) = 0;
  virtual void scatterAdd(const dsopt_scatter_add &scatter, const void *rows, const void *indices,
                          void *result, void *workspace, bool accumulate) = 0;
  virtual void scatter(const dsopt_scatter &scatter, const void *data, const void *indices,
                       const void *updates, void *result) = 0;
  virtual void ctc(const dsopt_ctc &ctc, const float *logs, const int64_t *targets,
                   const int64_t *inputLengths, const int64_t *targetLengths, void *workspace,
                   float *losses) = 0;
  virtual void ctcGrad(const dsopt_ctc &ctc, const float *logs, const int64_t *targets,
                       const int64_t *inputLengths, const int64_t *targetLengths, const float *grad,
                       void *workspace, float *gradient) = 0;
  virtual void accumulate(int64_t elements, const float *value, void *gradient, int64_t type,
                          bool accumulate) = 0;
  virtual void attention(const dsopt_attention &d, const AttentionTensors &tensors) = 0;
  virtual void attentionGrad(const dsopt_attention &d, const AttentionTensors &tensors, void *workspace) = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_DEVICECALLS_H
