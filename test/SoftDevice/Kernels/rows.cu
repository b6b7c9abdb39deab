// Kernels of the kinds that training has, as compilers write them.
#include "device.h"

/// GELU of rows with a bias, and a residual: y = x + gelu(a + bias).
KERNEL void bias_gelu(const float *a, const float *bias, const float *x, float *y, int rows, int columns) {
  for (int i = blockX() * threadsX() + threadX(); i < rows * columns; i += blocksX() * threadsX()) {
    float v = a[i] + bias[i % columns];
    y[i] = x[i] + 0.5f * v * (1.0f + tanhApprox(0.7978845608f * (v + 0.044715f * v * v * v)));
  }
}

/// One block a row.
KERNEL void softmax(const float *x, float *y, int columns) {
  SHARED static float partial[32];
  const float *row = x + (long)blockX() * columns;
  int warp = threadX() / 32, lane = threadX() % 32, warps = threadsX() / 32;
  float most = -__builtin_inff();
  for (int i = threadX(); i < columns; i += threadsX())
    most = row[i] > most ? row[i] : most;
  most = largestOfWarp(most);
  if (lane == 0)
    partial[warp] = most;
  barrier();
  most = largestOfWarp(lane < warps ? partial[lane] : -__builtin_inff());
  barrier();
  float sum = 0;
  for (int i = threadX(); i < columns; i += threadsX())
    sum += exp2((row[i] - most) * 1.44269504f);
  sum = sumOfWarp(sum);
  if (lane == 0)
    partial[warp] = sum;
  barrier();
  sum = sumOfWarp(lane < warps ? partial[lane] : 0);
  for (int i = threadX(); i < columns; i += threadsX())
    y[(long)blockX() * columns + i] = exp2((row[i] - most) * 1.44269504f) / sum;
}

/// Sums of columns, by atomics.
KERNEL void column_sums(const float *x, float *sums, int rows, int columns) {
  int row = blockX();
  for (int i = threadX(); i < columns; i += threadsX())
    __nvvm_atom_add_gen_f(&sums[i], x[(long)row * columns + i]);
}

struct Step {
  float rate, decay, beta1, beta2, epsilon;
  int count;
};
KERNEL void adamw(float *w, const float *g, float *m, float *v, Step step) {
  int i = blockX() * threadsX() + threadX();
  if (i >= step.count)
    return;
  float gradient = g[i];
  float first = step.beta1 * m[i] + (1 - step.beta1) * gradient;
  float second = step.beta2 * v[i] + (1 - step.beta2) * gradient * gradient;
  m[i] = first;
  v[i] = second;
  w[i] = w[i] * (1 - step.rate * step.decay) - step.rate * first / (__nvvm_sqrt_rn_f(second) + step.epsilon);
}

/// Four values at a time, to bf16.
KERNEL void to_bf16(const float *x, unsigned short *y, int count) {
  typedef float Float4 __attribute__((ext_vector_type(4)));
  int i = 4 * (blockX() * threadsX() + threadX());
  if (i + 3 >= count)
    return;
  Float4 v = *(const Float4 *)(x + i);
  unsigned low, high;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(v.y), "f"(v.x));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(v.w), "f"(v.z));
  typedef unsigned Pair __attribute__((ext_vector_type(2)));
  *(Pair *)(y + i) = Pair{low, high};
}

/// A switch that becomes a branch table, and rows that end at different times.
KERNEL void collatz(const int *start, int *steps, int count) {
  int i = blockX() * threadsX() + threadX();
  if (i >= count)
    return;
  long value = start[i];
  int taken = 0;
  while (value != 1) {
    switch (value % 8) {
    case 0:
      value /= 8, taken += 3;
      break;
    case 4:
      value /= 4, taken += 2;
      break;
    case 2:
    case 6:
      value /= 2, taken += 1;
      break;
    default:
      value = 3 * value + 1, taken += 1;
    }
  }
  steps[i] = taken;
}
