//===- Convolutions.cpp - a convolution's sizes ---------------------------===//

#include "dsopt/Interfaces/Convolutions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace dsopt;

#include "dsopt/Interfaces/ConvolutionKind.cpp.inc"

/// The dimensions that are moved over: all but the first and the second or last.
static ArrayRef<int64_t> places(const ConvolutionShape &s, ArrayRef<int64_t> shape) {
  return s.channelsLast ? shape.drop_front().drop_back() : shape.drop_front(2);
}
static int64_t channels(const ConvolutionShape &s, ArrayRef<int64_t> shape) {
  return s.channelsLast ? shape.back() : shape[1];
}

const char *dsopt::checkConvolution(const ConvolutionShape &s) {
  size_t rank = s.x.size();
  if (rank < 3 || rank > 2 + DSOPT_CONVOLUTION_RANK || s.w.size() != rank || s.y.size() != rank)
    return "x, w and y of one rank from 3 to 5";
  if (s.strides.size() != rank - 2 || s.dilations.size() != rank - 2 || s.pads.size() != rank - 2)
    return "an entry of strides, dilations and pads for each dimension that is moved over";
  if (s.groups < 1 || s.x[0] != s.y[0] || s.w[0] != channels(s, s.y) || s.w[0] % s.groups ||
      channels(s, s.x) != channels(s, s.w) * s.groups)
    return "batches and channels that fit";
  for (size_t i = 0; i < rank - 2; ++i) {
    if (s.strides[i] < 1 || s.dilations[i] < 1 || s.pads[i] < 0)
      return "strides and dilations of 1 or more, and pads of 0 or more";
    int64_t room = places(s, s.x)[i] + 2 * s.pads[i] - (places(s, s.w)[i] - 1) * s.dilations[i] - 1;
    if (room < 0 || room / s.strides[i] + 1 != places(s, s.y)[i])
      return "as many places as windows fit between equal pads";
  }
  return nullptr;
}

dsopt_convolution dsopt::describeConvolution(const ConvolutionShape &s) {
  dsopt_convolution d{};
  d.kind = s.kind == ConvolutionKind::Forward ? DSOPT_CONVOLUTION_FORWARD
           : s.kind == ConvolutionKind::Data  ? DSOPT_CONVOLUTION_DATA
                                              : DSOPT_CONVOLUTION_WEIGHT;
  d.type = s.isNarrow ? DSOPT_BF16 : DSOPT_F32;
  d.channels_last = s.channelsLast;
  d.batch = s.x[0];
  d.channels = channels(s, s.x);
  d.outputs = s.w[0];
  d.groups = s.groups;
  size_t rank = s.x.size() - 2, first = rank == 1;
  d.rank = static_cast<int64_t>(rank + first);
  d.size[0] = d.count[0] = d.kernel[0] = d.strides[0] = d.dilations[0] = 1;
  for (size_t i = 0; i < rank; ++i) {
    d.size[first + i] = places(s, s.x)[i];
    d.count[first + i] = places(s, s.y)[i];
    d.kernel[first + i] = places(s, s.w)[i];
    d.strides[first + i] = s.strides[i];
    d.dilations[first + i] = s.dilations[i];
    d.pads[first + i] = s.pads[i];
  }
  d.algorithm = dsopt_convolution_algorithm(&d);
  return d;
}
