//===- Calls.cpp - segments' calls on a CUDA device -----------------------===//

#include "Kernels/CUDA/Calls.h"

#include "Kernels/CUDA/Routines.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

/// Blocks of a launch for each multiprocessor, at most: enough to fill it with any kernel's, few enough that
/// starting them costs nothing. Those of a smaller grid go on by its size.
static constexpr int64_t kBlocksOfProcessor = 32;

Calls::Calls(Device &device, bool mayRound) : device(device), products(device, mayRound) {}

void Calls::launch(const dsopt_device_kernel &kernel, int64_t begin, int64_t end, void *const *args) {
  if (begin >= end)
    return;
  Function &function = kernels[&kernel];
  if (!function)
    function = device.find(kernel.name);
  launched = function;
  parameters.clear();
  parameters.push_back(&begin);
  parameters.push_back(&end);
  for (int64_t i = 0; i < kernel.arguments; ++i)
    parameters.push_back(const_cast<void **>(args + i));
  int64_t blocks = std::min((end - begin + kernel.per_block - 1) / kernel.per_block,
                            kBlocksOfProcessor * device.multiprocessors());
  DSOPT_CUDA(cuLaunchKernel, function, static_cast<unsigned>(blocks), 1, 1,
             static_cast<unsigned>(kernel.threads), 1, 1, 0, stream, parameters.data(), nullptr);
}

void Calls::gemm(const dsopt_gemm &product, const void *a, const void *b, void *c, void *workspace,
                 bool accumulate) {
  products.multiply(stream, product, a, b, c, accumulate, workspace);
}
void Calls::gemmPart(const dsopt_gemm_part &part, const void *a, const void *b, const float *addend, void *c,
                     void *workspace, bool accumulate) {
  products.multiplyPart(stream, part, a, b, addend, c, accumulate, workspace);
}
void Calls::gemmEpilogue(const dsopt_gemm_epilogue &product, const void *a, const void *b, const void *given,
                         void *kept, void *c) {
  products.multiplyEpilogue(stream, product, a, b, given, kept, c);
}
void Calls::convolution(const dsopt_convolution &convolution, const void *a, const void *b, void *result,
                        void *workspace, bool accumulate) {
  // Programs without one run where the library is not.
  if (!convolutions)
    convolutions = std::make_unique<Convolutions>(device);
  convolutions->convolve(stream, convolution, a, b, result, workspace, accumulate);
}
void Calls::linearNll(const dsopt_linear_nll &loss, const void *x, const void *weight, const void *bias,
                      const void *labels, const float *grad, float *losses, void *xGrad, void *weightGrad,
                      void *biasGrad, void *workspace, bool accumulateWeight, bool accumulateBias) {
  auto multiply = [this](const dsopt_gemm &product, const void *a, const void *b, void *c, void *sums,
                         bool accumulates) { gemm(product, a, b, c, sums, accumulates); };
  cuda::linearNll(device, stream, multiply, loss, x, weight, bias, labels, grad, losses, xGrad, weightGrad,
                  biasGrad, workspace, accumulateWeight, accumulateBias);
}
void Calls::scatterAdd(const dsopt_scatter_add &scatter, const void *rows, const void *indices, void *result,
                       void *workspace, bool accumulate) {
  cuda::scatterAdd(device, stream, scatter, rows, indices, result, workspace, accumulate);
}
void Calls::scatter(const dsopt_scatter &scatter, const void *data, const void *indices, const void *updates,
                    void *result) {
  cuda::scatter(device, stream, scatter, data, indices, updates, result);
}
void Calls::ctc(const dsopt_ctc &ctc, const float *logs, const int64_t *targets, const int64_t *inputLengths,
                const int64_t *targetLengths, void *workspace, float *losses) {
  cuda::ctc(device, stream, ctc, logs, targets, inputLengths, targetLengths, workspace, losses);
}
void Calls::ctcGrad(const dsopt_ctc &ctc, const float *logs, const int64_t *targets,
                    const int64_t *inputLengths, const int64_t *targetLengths, const float *grad,
                    void *workspace, float *gradient) {
  cuda::ctcGrad(device, stream, ctc, logs, targets, inputLengths, targetLengths, grad, workspace, gradient);
}
void Calls::accumulate(int64_t elements, const float *value, void *gradient, int64_t type, bool accumulate) {
  cuda::accumulate(device, stream, elements, value, gradient, type, accumulate);
}
void Calls::attention(const dsopt_attention &d, const AttentionTensors &tensors) {
  cuda::attention(device, stream, d, tensors);
}
void Calls::attentionGrad(const dsopt_attention &d, const AttentionTensors &tensors, void *workspace) {
  cuda::attentionGrad(device, stream, d, tensors, workspace);
}

} // namespace dsopt::runtime::cuda
