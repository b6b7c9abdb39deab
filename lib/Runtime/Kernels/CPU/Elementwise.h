//===- Elementwise.h - additions whose order is fixed -----------*- C++ -*-===//
//
// bf16 is uint16_t here, f16 _Float16. An addition is computed in fp32 and rounded to its
// target's type.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H

#include "dsopt/Runtime/Element.h"

namespace dsopt::runtime {

/// target[i] = source[i], rounded.
void convert(const float *source, float *target, int64_t elements);
void convert(const float *source, uint16_t *target, int64_t elements);
void convert(const uint16_t *source, float *target, int64_t elements);
void convert(const float *source, _Float16 *target, int64_t elements);
void convert(const _Float16 *source, float *target, int64_t elements);

/// target[i] = target[i] + source[i], rounded.
void addInto(float *target, const float *source, int64_t elements);
void addInto(float *target, const uint16_t *source, int64_t elements);
void addInto(uint16_t *target, const float *source, int64_t elements);
void addInto(uint16_t *target, const uint16_t *source, int64_t elements);
void addInto(float *target, const _Float16 *source, int64_t elements);
void addInto(_Float16 *target, const float *source, int64_t elements);
void addInto(_Float16 *target, const _Float16 *source, int64_t elements);

/// Sums `parts[0..count)` elementwise along the canonical tree (neighbours paired level by level, an odd
/// one carried up), each sum rounded, and stores the sum to, or adds it to, `target`, which may be one of
/// the parts. At most 2^20 parts.
void treeSum(Element type, const void *const *parts, int64_t count, void *target, int64_t elements,
             bool accumulate);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_ELEMENTWISE_H
