// Kernels with one mistake each.
#include "device.h"

KERNEL void past_the_end(float *x) { x[threadX()] = 1; }
KERNEL void unwritten(const float *x, float *y) { y[threadX()] = x[threadX() + 4]; }
KERNEL void misaligned(char *x) { *(volatile int *)(x + 2) = 1; }

/// Sums neighbours through shared memory; `barriers` leaves out one of them.
template <bool between, bool behind> DEVICE void neighbours(const float *x, float *y) {
  SHARED static float values[64];
  for (int round = 0; round < 2; ++round) {
    values[threadX()] = x[threadX()] + round;
    if (between)
      barrier();
    y[threadX()] = values[threadX()] + values[(threadX() + 32) % 64];
    if (behind)
      barrier();
  }
}
KERNEL void with_barriers(const float *x, float *y) { neighbours<true, true>(x, y); }
KERNEL void without_barrier(const float *x, float *y) { neighbours<false, true>(x, y); }
KERNEL void without_barrier_behind(const float *x, float *y) { neighbours<true, false>(x, y); }

/// Counts by atomics; `behind`: before they are read, `between`: after they are cleared, all warps meet.
template <bool between, bool behind> DEVICE void count_shared(const int *x, int *y) {
  SHARED static int counts[64];
  counts[threadX()] = 0;
  if (between)
    barrier();
  __scoped_atomic_fetch_add(&counts[x[threadX()]], 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  if (behind)
    barrier();
  y[threadX()] = counts[63 - threadX()];
}
KERNEL void shared_atomics(const int *x, int *y) { count_shared<true, true>(x, y); }
KERNEL void shared_atomics_too_early(const int *x, int *y) { count_shared<false, true>(x, y); }
KERNEL void shared_atomics_read_too_early(const int *x, int *y) { count_shared<true, false>(x, y); }

KERNEL void unwritten_shared(float *y) {
  SHARED static float values[64];
  if (threadX() != 3)
    values[threadX()] = 1;
  barrier();
  y[threadX()] = values[63 - threadX()];
}
KERNEL void past_shared(float *y, int at) {
  SHARED static float values[64];
  values[threadX() + at] = 1;
  barrier();
  y[threadX()] = values[threadX()];
}

/// Every block writes the same places; or reads what its neighbour writes.
KERNEL void blocks_write_the_same(int *y) { y[threadX()] = blockX(); }
KERNEL void block_reads_another(int *y) {
  y[blockX() * 32 + threadX()] = blockX();
  y[64 + blockX() * 32 + threadX()] = y[(1 - blockX()) * 32 + threadX()];
}
/// Through global memory, with a barrier or without.
template <bool waits> DEVICE void through_memory(int *y) {
  y[threadX()] = threadX();
  if (waits)
    barrier();
  y[64 + threadX()] = y[63 - threadX()];
}
KERNEL void memory_with_barrier(int *y) { through_memory<true>(y); }
KERNEL void memory_without_barrier(int *y) { through_memory<false>(y); }

KERNEL void barrier_of_some_lanes(float *y) {
  if (threadX() & 1)
    barrier();
  y[threadX()] = 1;
}
KERNEL void barrier_of_some_warps(float *y) {
  if (threadX() < 32)
    barrier();
  y[threadX()] = 1;
}
KERNEL void barrier_after_return(float *y, int count) {
  if (threadX() >= count)
    return;
  barrier();
  y[threadX()] = 1;
}
KERNEL void divergent_shuffle(float *y) {
  float value = threadX();
  if (threadX() & 1)
    value = exchange(value, 2) + 1;
  else
    value = exchange(value, 2);
  y[threadX()] = value;
}
KERNEL void ends_in_a_trap(int which) {
  if (threadX() == which)
    __builtin_trap();
}
KERNEL void unknown(int *x) { asm volatile("nanosleep.u32 %0;" ::"r"(*x)); }
