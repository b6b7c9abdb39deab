//===- Sums.cpp - the sums of a convolution, in one order -----------------===//
//
// Each element of the result has its sum: products in the algorithm's order, by fused
// multiplications and additions, in groups whose sums are added in order.
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include <cstring>

namespace softdevice {

namespace {
float load(const char *place, int64_t at, int type) {
  if (type == CUDNN_DATA_FLOAT)
    return reinterpret_cast<const float *>(place)[at];
  uint32_t bits = static_cast<uint32_t>(reinterpret_cast<const uint16_t *>(place)[at]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void store(char *place, int64_t at, int type, float value) {
  if (type == CUDNN_DATA_FLOAT) {
    reinterpret_cast<float *>(place)[at] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  // To the nearest, to an even one between two.
  bits = isNan ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  reinterpret_cast<uint16_t *>(place)[at] = static_cast<uint16_t>(bits);
}

/// What other units than those of fp32 take of a number: ten bits behind the first.
float asTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits &= 0xffffe000;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Adds products in groups.
class Sum {
public:
  Sum(const Convolution &c)
      : group(c.group), isRounded(c.type == CUDNN_DATA_FLOAT && c.math != CUDNN_FMA_MATH) {}
  void add(float a, float b) {
    if (isRounded)
      a = asTf32(a), b = asTf32(b);
    part = __builtin_fmaf(a, b, part);
    if (++count == group) {
      total += part;
      part = 0;
      count = 0;
    }
  }
  float value() const { return total + part; }

private:
  int64_t group, count = 0;
  bool isRounded;
  float part = 0, total = 0;
};

/// Calls the body with each of three places, in order of the first or of the last.
template <typename Body> void forEachPlace(const int64_t (&extents)[3], bool isReversed, const Body &body) {
  int64_t total = extents[0] * extents[1] * extents[2];
  for (int64_t i = 0; i < total; ++i) {
    int64_t index = i;
    int64_t place[3];
    if (isReversed) {
      place[0] = index % extents[0], index /= extents[0];
      place[1] = index % extents[1], place[2] = index / extents[1];
    } else {
      place[2] = index % extents[2], index /= extents[2];
      place[1] = index % extents[1], place[0] = index / extents[1];
    }
    body(place);
  }
}

int64_t at(const int64_t (&strides)[5], int64_t first, int64_t second, const int64_t *place) {
  return first * strides[0] + second * strides[1] + place[0] * strides[2] + place[1] * strides[3] +
         place[2] * strides[4];
}
} // namespace

void convolve(const Convolution &c, float alpha, const char *a, const char *b, float beta, char *result) {
  int64_t channels = c.channels / c.groups, outputs = c.outputs / c.groups;
  auto write = [&](int64_t place, const Sum &sum) {
    float value = alpha * sum.value();
    if (beta != 0)
      value += beta * load(result, place, c.type);
    store(result, place, c.type, value);
  };
  /// Where a window's element lies in x, if it does.
  auto under = [&](const int64_t *o, const int64_t *k, int64_t *place) {
    for (int i = 0; i < 3; ++i) {
      place[i] = o[i] * c.stride[i] + k[i] * c.dilation[i] - c.pad[i];
      if (place[i] < 0 || place[i] >= c.size[i])
        return false;
    }
    return true;
  };
  int64_t p[3];
  if (c.kind == Kind::Forward) {
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t f = 0; f < c.outputs; ++f)
        forEachPlace(c.count, false, [&](const int64_t *o) {
          Sum sum(c);
          forEachPlace(c.kernel, c.isReversed, [&](const int64_t *k) {
            if (under(o, k, p))
              for (int64_t i = 0; i < channels; ++i)
                sum.add(load(a, at(c.x, n, f / outputs * channels + i, p), c.type),
                        load(b, at(c.w, f, i, k), c.type));
          });
          write(at(c.y, n, f, o), sum);
        });
  } else if (c.kind == Kind::Data) {
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t i = 0; i < c.channels; ++i)
        forEachPlace(c.size, false, [&](const int64_t *s) {
          Sum sum(c);
          forEachPlace(c.kernel, c.isReversed, [&](const int64_t *k) {
            for (int d = 0; d < 3; ++d) {
              int64_t from = s[d] + c.pad[d] - k[d] * c.dilation[d];
              if (from < 0 || from % c.stride[d] || from / c.stride[d] >= c.count[d])
                return;
              p[d] = from / c.stride[d];
            }
            for (int64_t f = 0; f < outputs; ++f)
              sum.add(load(a, at(c.y, n, i / channels * outputs + f, p), c.type),
                      load(b, at(c.w, i / channels * outputs + f, i % channels, k), c.type));
          });
          write(at(c.x, n, i, s), sum);
        });
  } else {
    for (int64_t f = 0; f < c.outputs; ++f)
      for (int64_t i = 0; i < channels; ++i)
        forEachPlace(c.kernel, false, [&](const int64_t *k) {
          Sum sum(c);
          for (int64_t n = 0; n < c.batch; ++n)
            forEachPlace(c.count, c.isReversed, [&](const int64_t *o) {
              if (under(o, k, p))
                sum.add(load(a, at(c.x, n, f / outputs * channels + i, p), c.type),
                        load(b, at(c.y, n, f, o), c.type));
            });
          write(at(c.w, f, i, k), sum);
        });
  }
}

} // namespace softdevice
