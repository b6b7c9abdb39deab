//===- AttentionTensors.h - the tensors of a call of attention --*- C++ -*-===//
//
// What the routines of the host and of devices are given beside the descriptor. The caller owns all of it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_ATTENTIONTENSORS_H
#define DSOPT_LIB_RUNTIME_KERNELS_ATTENTIONTENSORS_H

namespace dsopt::runtime {

/// Null where there is none; those of the gradient are null forward. What came before (`previous`,
/// `kPrevious`
/// ...) is contiguous, as are statistics of rows (lse).
struct AttentionTensors {
  const void *q, *k, *v, *mask;
  const float *previous, *previousLse;
  void *out;
  float *lse;
  const void *grad;
  const float *qPrevious, *kPrevious, *vPrevious;
  void *qGrad, *kGrad, *vGrad;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_ATTENTIONTENSORS_H
