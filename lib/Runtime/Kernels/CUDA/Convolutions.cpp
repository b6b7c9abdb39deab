//===- Convolutions.cpp - convolutions on a device -------------------------===//

#include "Kernels/CUDA/Convolutions.h"

#include "dsopt/Runtime/Error.h"

#include <cstring>
#include <vector>

namespace dsopt::runtime::cuda {

using Sizes = std::vector<int>;

static std::string joined(const int64_t *begin, const int64_t *end) {
  std::string text;
  for (; begin != end; ++begin)
    text += (text.empty() ? "" : "x") + std::to_string(*begin);
  return text;
}

static std::string shapeText(int64_t first, int64_t second, const int64_t *extents, int64_t rank) {
  return std::to_string(first) + "x" + std::to_string(second) + "x" + joined(extents, extents + rank);
}

std::string convolutionText(const dsopt_convolution &d) {
  std::string text = d.kind == DSOPT_CONVOLUTION_FORWARD ? "the convolution "
                     : d.kind == DSOPT_CONVOLUTION_DATA  ? "the gradient of x of the convolution "
                                                         : "the gradient of w of the convolution ";
  text += shapeText(d.batch, d.channels, d.size, d.rank) + " with " +
          shapeText(d.outputs, d.channels / d.groups, d.kernel, d.rank) + " to " +
          shapeText(d.batch, d.outputs, d.count, d.rank) + " (" + (d.type == DSOPT_BF16 ? "bf16" : "f32") +
          ", channels " + (d.channels_last ? "last" : "second");
  auto append = [&](const char *name, const int64_t *values) {
    text += std::string(", ") + name + " " + joined(values, values + d.rank);
  };
  append("strides", d.strides);
  append("dilations", d.dilations);
  append("pads", d.pads);
  return text + ", " + std::to_string(d.groups) + (d.groups == 1 ? " group)" : " groups)");
}

/// The library's name of an algorithm.
static std::string algorithmText(const dsopt_convolution &d) {
  const char *family = d.kind == DSOPT_CONVOLUTION_FORWARD ? "CUDNN_CONVOLUTION_FWD_ALGO_"
                       : d.kind == DSOPT_CONVOLUTION_DATA  ? "CUDNN_CONVOLUTION_BWD_DATA_ALGO_"
                                                           : "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_";
  if (d.kind == DSOPT_CONVOLUTION_FORWARD && d.algorithm == DSOPT_CONVOLUTION_IMPLICIT_GEMM)
    return std::string(family) + "IMPLICIT_GEMM";
  if (d.kind == DSOPT_CONVOLUTION_FORWARD && d.algorithm == DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM)
    return std::string(family) + "IMPLICIT_PRECOMP_GEMM";
  return family + std::to_string(d.algorithm);
}

void Convolutions::refuse(const dsopt_convolution &d, DnnStatus status) const {
  throw Error(StatusFailure, library() + " refuses " + algorithmText(d) + " for " + convolutionText(d) +
                                 " on sm_" + std::to_string(device.architecture()) + ": " +
                                 Cudnn::get().describe(status));
}

/// Extents as the library has them: the second dimension is of channels, however they lie.
static Sizes shapeOf(int64_t first, int64_t second, const int64_t *extents, int64_t rank) {
  Sizes shape = {static_cast<int>(first), static_cast<int>(second)};
  shape.insert(shape.end(), extents, extents + rank);
  return shape;
}

static void describeTensor(DnnTensor tensor, const dsopt_convolution &d, const Sizes &shape) {
  Sizes strides(shape.size());
  int stride = d.channels_last ? shape[1] : 1;
  for (size_t i = shape.size(); i-- > 2; stride *= shape[i])
    strides[i] = stride;
  strides[1] = d.channels_last ? 1 : stride;
  strides[0] = d.channels_last ? stride : stride * shape[1];
  DSOPT_CUDNN_CALL(cudnnSetTensorNdDescriptor, tensor, d.type == DSOPT_BF16 ? kDnnBf16 : kDnnF32,
                   static_cast<int>(shape.size()), shape.data(), strides.data());
}

const Convolutions::Prepared &Convolutions::prepare(const dsopt_convolution &d) {
  std::array<int64_t, sizeof(d) / sizeof(int64_t)> key;
  std::memcpy(key.data(), &d, sizeof(d));
  if (auto found = prepared.find(key); found != prepared.end())
    return found->second;
  Prepared made;
  int type = d.type == DSOPT_BF16 ? kDnnBf16 : kDnnF32;
  describeTensor(made.x, d, shapeOf(d.batch, d.channels, d.size, d.rank));
  describeTensor(made.y, d, shapeOf(d.batch, d.outputs, d.count, d.rank));
  Sizes weight = shapeOf(d.outputs, d.channels / d.groups, d.kernel, d.rank);
  DSOPT_CUDNN_CALL(cudnnSetFilterNdDescriptor, made.w, type,
                   d.channels_last ? kDnnChannelsLast : kDnnChannelsSecond, static_cast<int>(weight.size()),
                   weight.data());
  auto listed = [&](const int64_t *values) { return Sizes(values, values + d.rank); };
  DSOPT_CUDNN_CALL(cudnnSetConvolutionNdDescriptor, made.windows, static_cast<int>(d.rank),
                   listed(d.pads).data(), listed(d.strides).data(), listed(d.dilations).data(),
                   kDnnCrossCorrelation, kDnnF32);
  DSOPT_CUDNN_CALL(cudnnSetConvolutionGroupCount, made.windows, static_cast<int>(d.groups));
  DSOPT_CUDNN_CALL(cudnnSetConvolutionMathType, made.windows,
                   d.type == DSOPT_BF16 ? kDnnTensorMath : kDnnFmaMath);

  const Cudnn &cudnn = Cudnn::get();
  int algorithm = static_cast<int>(d.algorithm);
  DnnStatus status =
      d.kind == DSOPT_CONVOLUTION_FORWARD
          ? cudnn.cudnnGetConvolutionForwardWorkspaceSize(handle, made.x, made.w, made.windows, made.y,
                                                          algorithm, &made.workspaceBytes)
      : d.kind == DSOPT_CONVOLUTION_DATA
          ? cudnn.cudnnGetConvolutionBackwardDataWorkspaceSize(handle, made.w, made.y, made.windows, made.x,
                                                               algorithm, &made.workspaceBytes)
          : cudnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, made.x, made.y, made.windows, made.w,
                                                                 algorithm, &made.workspaceBytes);
  if (status != kDnnSuccess)
    refuse(d, status);
  int64_t planned = dsopt_convolution_workspace(&d);
  if (made.workspaceBytes > static_cast<size_t>(planned))
    throw Error(StatusFailure, library() + " takes " + std::to_string(made.workspaceBytes) +
                                   " bytes of scratch with " + algorithmText(d) + " for " +
                                   convolutionText(d) + " on sm_" + std::to_string(device.architecture()) +
                                   ", but " + std::to_string(planned) + " are planned");
  return prepared.emplace(key, std::move(made)).first->second;
}

void Convolutions::convolve(StreamHandle stream, const dsopt_convolution &d, const void *a, const void *b,
                            void *result, void *workspace, bool accumulate) {
  const Prepared &p = prepare(d);
  const Cudnn &cudnn = Cudnn::get();
  DSOPT_CUDNN_CALL(cudnnSetStream, handle, stream);
  float alpha = 1, beta = accumulate ? 1 : 0;
  int algorithm = static_cast<int>(d.algorithm);
  DnnStatus status =
      d.kind == DSOPT_CONVOLUTION_FORWARD
          ? cudnn.cudnnConvolutionForward(handle, &alpha, p.x, a, p.w, b, p.windows, algorithm, workspace,
                                          p.workspaceBytes, &beta, p.y, result)
      : d.kind == DSOPT_CONVOLUTION_DATA
          ? cudnn.cudnnConvolutionBackwardData(handle, &alpha, p.w, b, p.y, a, p.windows, algorithm,
                                               workspace, p.workspaceBytes, &beta, p.x, result)
          : cudnn.cudnnConvolutionBackwardFilter(handle, &alpha, p.x, a, p.y, b, p.windows, algorithm,
                                                 workspace, p.workspaceBytes, &beta, p.w, result);
  if (status != kDnnSuccess)
    refuse(d, status);
}

} // namespace dsopt::runtime::cuda
