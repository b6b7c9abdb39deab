//===- Elementwise.h - additions whose order is fixed -----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H

#include <cstdint>

namespace dsopt::runtime {

/// target[i] += source[i].
void addInto(float *target, const float *source, int64_t elements);

/// Sums `parts[0..count)` elementwise along the canonical tree (neighbours paired level by level, an odd
/// one carried up) and stores the sum to, or adds it to, `target`, which may be one of the parts.
/// At most 2^20 parts.
void treeSum(const float *const *parts, int64_t count, float *target, int64_t elements, bool accumulate);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H
