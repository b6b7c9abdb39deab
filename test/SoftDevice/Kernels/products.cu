// c = a b with bf16 operands: a is [m, k], b is [n, k] (so that its rows are columns), c is [m, n] in fp32.
// A block of 4 warps makes 64 x 64; k goes by 32, with two stages of asynchronous copies.
#include "device.h"

typedef unsigned short bf16;
constexpr int kTile = 64, kDepth = 32, kPitch = kDepth + 8;

DEVICE unsigned sharedAddress(const void *p) {
  return (unsigned)(unsigned long)(const __attribute__((address_space(3))) void *)p;
}
DEVICE void copy16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAddress(to)), "l"(from) : "memory");
}
DEVICE void loadMatrices(unsigned (&r)[4], const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p))
               : "memory");
}
DEVICE void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
               "{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool waits> DEVICE void product(const bf16 *a, const bf16 *b, float *c, int n, int k) {
  SHARED static bf16 as[2][kTile * kPitch], bs[2][kTile * kPitch];
  int row = blockX() / (n / kTile) * kTile, column = blockX() % (n / kTile) * kTile;
  int warp = threadX() / 32, lane = threadX() % 32;
  float sums[8][4] = {};
  auto fetch = [&](int stage, int from) {
    for (int i = threadX(); i < kTile * kDepth / 8; i += 128) {
      int r = i / (kDepth / 8), at = i % (kDepth / 8) * 8;
      copy16(&as[stage][r * kPitch + at], a + (long)(row + r) * k + from + at);
      copy16(&bs[stage][r * kPitch + at], b + (long)(column + r) * k + from + at);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0, 0);
  for (int from = 0, stage = 0; from < k; from += kDepth, stage ^= 1) {
    if (from + kDepth < k)
      fetch(stage ^ 1, from + kDepth);
    else
      asm volatile("cp.async.commit_group;" ::: "memory");
    if (waits)
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    barrier();
    for (int step = 0; step < kDepth; step += 16) {
      unsigned ra[4], rb[4];
      loadMatrices(ra, &as[stage][(warp * 16 + lane % 16) * kPitch + step + lane / 16 * 8]);
      for (int pair = 0; pair < 4; ++pair) {
        loadMatrices(rb,
                     &bs[stage][(pair * 16 + lane % 8 + lane / 16 * 8) * kPitch + step + lane / 8 % 2 * 8]);
        multiply(sums[2 * pair], ra, rb[0], rb[1]);
        multiply(sums[2 * pair + 1], ra, rb[2], rb[3]);
      }
    }
    barrier();
  }
  for (int tile = 0; tile < 8; ++tile)
    for (int i = 0; i < 4; ++i)
      c[(long)(row + warp * 16 + lane / 4 + i / 2 * 8) * n + column + tile * 8 + lane % 4 * 2 + i % 2] =
          sums[tile][i];
}

KERNEL void product_bf16(const bf16 *a, const bf16 *b, float *c, int n, int k) {
  product<true>(a, b, c, n, k);
}
KERNEL void product_without_wait(const bf16 *a, const bf16 *b, float *c, int n, int k) {
  product<false>(a, b, c, n, k);
}
