//===- AttentionDots.cu - the result times its gradient -------------------===//

#include "AttentionTiles.h"

namespace {
/// Of a row of the result and its gradient: their product, a warp a row.
template <typename T> DEVICE void dots(const dsopt_attention &d, const T *out, const T *grad, float *result) {
  int64_t unit = blockX() * (kThreads / 32) + warpX();
  if (unit >= d.batch * d.heads * d.rows)
    return;
  int64_t pair = unit / d.rows, row = unit % d.rows, batch = pair / d.heads, head = pair % d.heads;
  const T *left = out + batch * d.out[0] + head * d.out[1] + row * d.out[2];
  const T *right = grad + batch * d.grad[0] + head * d.grad[1] + row * d.grad[2];
  float sum = 0;
  for (int64_t i = laneX(); i < d.width; i += 32)
    sum = fma(widen(left[i]), widen(right[i]), sum);
  sum = sumOfLanes(sum);
  if (laneX() == 0)
    result[unit] = sum;
}
} // namespace

#define DOTS(name, T)                                                                                        \
  KERNEL(kThreads)                                                                                           \
  void dsopt_attention_dots_##name(dsopt_attention d, const T *out, const T *grad, float *result) {          \
    dots(d, out, grad, result);                                                                              \
  }
DOTS(f32, float)
DOTS(bf16, bf16)
DOTS(f16, f16)
