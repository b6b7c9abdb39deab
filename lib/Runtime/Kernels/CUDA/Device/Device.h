//===- Device.h - what kernels of the routines need of CUDA -----*- C++ -*-===//
//
// Without the toolkit's headers: clang's builtins and a few instructions. Sources are
// compiled without contraction, so that a product and a sum are two roundings unless
// fma() is written.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DEVICE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DEVICE_H

#include "dsopt/Runtime/ABI.h"

#define KERNEL(threads) extern "C" __attribute__((global)) __attribute__((launch_bounds(threads)))
#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define DEVICE_MEMBER __attribute__((device)) __attribute__((always_inline))
#define SHARED __attribute__((shared))
/// Of a kernel's parameter that is read in place, not copied first.
#define BY_VALUE __attribute__((grid_constant))

typedef uint16_t bf16;
typedef _Float16 f16;
typedef float Float4 __attribute__((ext_vector_type(4)));
typedef uint32_t Word2 __attribute__((ext_vector_type(2)));
typedef uint32_t Word4 __attribute__((ext_vector_type(4)));

DEVICE int threadX() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int64_t blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int threadsX() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE int64_t blocksX() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE int laneX() { return threadX() % 32; }
DEVICE int warpX() { return threadX() / 32; }
DEVICE void barrier() { __syncthreads(); }
DEVICE void barrierOfWarp() { __nvvm_bar_warp_sync(~0u); }

template <typename T> DEVICE T least(T a, T b) { return b < a ? b : a; }
template <typename T> DEVICE T most(T a, T b) { return a < b ? b : a; }
DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float infinity() { return __builtin_inff(); }

/// A lane's value from the lane whose number differs in `lanes`.
DEVICE float exchange(float value, int lanes) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_bfly_i32(~0u, __builtin_bit_cast(int, value), lanes, 31));
}
DEVICE double exchange(double value, int lanes) {
  auto bits = __builtin_bit_cast(uint64_t, value);
  uint64_t low = uint32_t(__nvvm_shfl_sync_bfly_i32(~0u, int(bits), lanes, 31));
  uint64_t high = uint32_t(__nvvm_shfl_sync_bfly_i32(~0u, int(bits >> 32), lanes, 31));
  return __builtin_bit_cast(double, high << 32 | low);
}
/// The largest number: one that is none is passed over.
DEVICE float largest(float a, float b) { return __nvvm_fmax_f(a, b); }
/// Over lanes whose numbers differ in bits below `lanes`, in a fixed tree.
DEVICE float largestOfLanes(float value, int lanes = 32) {
  for (int i = 1; i < lanes; i *= 2)
    value = largest(value, exchange(value, i));
  return value;
}
template <typename T> DEVICE T sumOfLanes(T value, int lanes = 32) {
  for (int i = 1; i < lanes; i *= 2)
    value += exchange(value, i);
  return value;
}
DEVICE uint32_t lanesWhere(bool condition) { return __nvvm_vote_ballot_sync(~0u, condition); }

/// 2^x.
DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

/// The host's rounding, bit for bit: to nearest even, with denormals, and numbers that are none kept quiet.
DEVICE bf16 roundToBf16(float value) {
  auto bits = __builtin_bit_cast(uint32_t, value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return (bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
}
DEVICE f16 roundToF16(float value) {
  auto bits = __builtin_bit_cast(uint32_t, value);
  uint16_t quiet = (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x1ff);
  return (bits & 0x7fffffff) > 0x7f800000 ? __builtin_bit_cast(f16, quiet) : static_cast<f16>(value);
}
DEVICE float widen(float value) { return value; }
DEVICE float widen(f16 value) { return value; }
DEVICE float widen(bf16 value) { return __builtin_bit_cast(float, uint32_t(value) << 16); }
DEVICE void store(float value, float &target) { target = value; }
DEVICE void store(float value, bf16 &target) { target = roundToBf16(value); }
DEVICE void store(float value, f16 &target) { target = roundToF16(value); }
/// Two of `T` in a word, the first below.
template <typename T> DEVICE uint32_t pairOf(float low, float high);
template <> DEVICE_MEMBER inline uint32_t pairOf<bf16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <> DEVICE_MEMBER inline uint32_t pairOf<f16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DEVICE_H
