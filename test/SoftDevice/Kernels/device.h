// What kernels of tests need of CUDA, without its headers.
#pragma once
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device)) __attribute__((always_inline)) inline
#define SHARED __attribute__((shared))

DEVICE int threadX() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int threadsX() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE int blocksX() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE void barrier() { __syncthreads(); }
DEVICE float exchange(float value, int lanes) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_bfly_i32(-1, __builtin_bit_cast(int, value), lanes, 31));
}
DEVICE float largestOfWarp(float value) {
  for (int lanes = 16; lanes; lanes /= 2) {
    float other = exchange(value, lanes);
    value = other > value ? other : value;
  }
  return value;
}
DEVICE float sumOfWarp(float value) {
  for (int lanes = 16; lanes; lanes /= 2)
    value += exchange(value, lanes);
  return value;
}
DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float tanhApprox(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float rsqrt(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
