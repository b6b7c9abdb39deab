//===- ToyDevice.cu - the toy's arithmetic on a device ----------------------===//
//
// With the host's bits: a sum is one thread's, in order.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CUDA/Device/Device.h"
#include "dsopt/Runtime/Scalars.h"

DEVICE int64_t first(int64_t begin) { return begin + blockX() * threadsX() + threadX(); }
DEVICE int64_t step() { return blocksX() * threadsX(); }

KERNEL(32) void multiply(int64_t begin, int64_t end, const float *a, const float *b, float *c) {
  for (int64_t i = first(begin); i < end; i += step())
    c[i] = a[i] * b[i];
}
KERNEL(32) void scale(int64_t begin, int64_t end, const float *a, const float *factor, float *c) {
  for (int64_t i = first(begin); i < end; i += step())
    c[i] = a[i] * *factor;
}
/// A range of one element, which is the sum of all `elements` products.
KERNEL(32) void dot(int64_t begin, int64_t end, const float *a, const float *b, float *sum) {
  constexpr int64_t kElements = 128;
  for (int64_t i = first(begin); i < end; i += step()) {
    float total = 0;
    for (int64_t e = 0; e < kElements; ++e)
      total += a[e] * b[e];
    sum[i] = total;
  }
}
KERNEL(32) void direct(int64_t begin, int64_t end, float *, float *g, const float *s) {
  for (int64_t i = first(begin); i < end; i += step())
    g[i] *= s[DSOPT_FACTOR];
}
KERNEL(32) void updateByNorms(int64_t begin, int64_t end, float *p, const float *g, const float *s) {
  for (int64_t i = first(begin); i < end; i += step())
    p[i] -= s[DSOPT_LR] * (g[i] * s[DSOPT_TRUST]);
}
KERNEL(32) void update(int64_t begin, int64_t end, float *p, const float *g, const float *s) {
  for (int64_t i = first(begin); i < end; i += step())
    p[i] -= s[DSOPT_LR] * (g[i] * s[DSOPT_FACTOR]);
}
