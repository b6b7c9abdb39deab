//===- Algorithms.cpp - which algorithm does which convolution ------------===//
//
// What the library documents: deterministic ones alone, each with an order of sums and
// scratch of its own.
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include <algorithm>

namespace softdevice {

static int64_t elements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

/// Strides of contiguous elements, channels second or last.
static std::vector<int64_t> packed(const std::vector<int64_t> &shape, bool isLast) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = isLast ? shape[1] : 1;
  for (size_t i = shape.size(); i-- > 2; stride *= shape[i])
    strides[i] = stride;
  strides[1] = isLast ? 1 : stride;
  strides[0] = isLast ? stride : stride * shape[1];
  return strides;
}

/// Batch and channels, then three dimensions that are moved over, the first of 1 where there are two.
static void spread(const std::vector<int64_t> &from, int64_t (&to)[5], int64_t fill) {
  bool isShort = from.size() == 4;
  for (size_t i = 0; i < 5; ++i)
    to[i] = i < 2 ? from[i] : isShort && i == 2 ? fill : from[i - isShort];
}
static void spread(const std::vector<int64_t> &from, int64_t (&to)[3], int64_t fill) {
  bool isShort = from.size() == 2;
  for (size_t i = 0; i < 3; ++i)
    to[i] = isShort && i == 0 ? fill : from[i - isShort];
}

Convolution convolutionOf(Objects &objects, Kind kind, const softTensor *ofX, const softFilter *ofW,
                          const softWindows *windows, const softTensor *ofY, int algorithm) {
  const softTensor &x = *known(objects, ofX), &y = *known(objects, ofY);
  const softFilter &w = *known(objects, ofW);
  const softWindows &o = *known(objects, windows);
  auto need = [](bool holds, const std::string &text) { expect(holds, CUDNN_STATUS_BAD_PARAM, text); };
  auto support = [](bool holds, const std::string &text) { expect(holds, CUDNN_STATUS_NOT_SUPPORTED, text); };
  need(x.type >= 0 && x.type == w.type && x.type == y.type, "x, w and y have no one type");
  size_t rank = x.shape.size();
  need(w.shape.size() == rank && y.shape.size() == rank && o.pads.size() == rank - 2,
       "x, w, y and the windows have no one rank");
  need(o.groups >= 1 && x.shape[1] == w.shape[1] * o.groups && w.shape[0] % o.groups == 0 &&
           y.shape[1] == w.shape[0] && x.shape[0] == y.shape[0],
       "batches, channels or groups do not fit");
  for (size_t i = 0; i < rank - 2; ++i) {
    int64_t room = x.shape[2 + i] + 2 * o.pads[i] - (w.shape[2 + i] - 1) * o.dilations[i] - 1;
    need(room >= 0 && room / o.strides[i] + 1 == y.shape[2 + i],
         "y has " + std::to_string(y.shape[2 + i]) + " places in dimension " + std::to_string(i) +
             ", expected " + std::to_string(room / o.strides[i] + 1));
  }
  bool isLast = w.format == CUDNN_TENSOR_NHWC, isNarrow = x.type == CUDNN_DATA_BFLOAT16;
  support(x.strides == packed(x.shape, isLast) && y.strides == packed(y.shape, isLast),
          "x or y does not lie as w's format says");
  bool isDilated = std::any_of(o.dilations.begin(), o.dilations.end(), [](int64_t one) { return one > 1; });
  if (kind == Kind::Forward) {
    support(algorithm == 0 || algorithm == 1,
            "the software device has no forward algorithm " + std::to_string(algorithm));
    support(algorithm == 0 || !isDilated, "IMPLICIT_PRECOMP_GEMM has no dilations");
  } else {
    support(algorithm == 1, "the software device has no algorithm " + std::to_string(algorithm) +
                                " of gradients: it adds in no order");
  }
  support(!isNarrow || o.math != CUDNN_FMA_MATH, "bf16 is multiplied by tensor units");
  support(!isNarrow || (isLast && x.shape[1] % 8 == 0 && y.shape[1] % 8 == 0 && o.groups == 1),
          "bf16 needs channels last, in multiples of 8, of one group");

  Convolution c{};
  c.kind = kind;
  c.type = x.type, c.math = o.math;
  c.batch = x.shape[0], c.channels = x.shape[1], c.outputs = y.shape[1], c.groups = o.groups;
  int64_t whole[5];
  spread(x.shape, whole, 1), std::copy(whole + 2, whole + 5, c.size);
  spread(y.shape, whole, 1), std::copy(whole + 2, whole + 5, c.count);
  spread(w.shape, whole, 1), std::copy(whole + 2, whole + 5, c.kernel);
  spread(o.strides, c.stride, 1), spread(o.dilations, c.dilation, 1), spread(o.pads, c.pad, 0);
  spread(x.strides, c.x, 0), spread(y.strides, c.y, 0), spread(packed(w.shape, isLast), c.w, 0);
  c.extentX = elements(x.shape), c.extentW = elements(w.shape), c.extentY = elements(y.shape);
  c.group = kind == Kind::Forward ? (algorithm == 0 ? 32 : 8) : kind == Kind::Data ? 16 : 64;
  c.isReversed = kind != Kind::Forward || algorithm == 1;
  // Tables of places for all but IMPLICIT_GEMM; partial sums of weights.
  c.scratch = kind == Kind::Forward && algorithm == 0 ? 0 : 8 * elements(w.shape) / w.shape[0];
  if (kind == Kind::Weight)
    c.scratch += 4 * c.extentW;
  c.scratch += setting("scratch", 0);
  return c;
}

} // namespace softdevice
