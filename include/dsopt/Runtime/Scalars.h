//===- Scalars.h - scalars that the runtime hands to kernels ----*- C -*-===//
//
// One table of floats for each optimizer group (parameters of equal learning
// rate scale and weight decay), written by the step's decision, read by update
// kernels; and the context of each micro-batch, read by dropout. C, no other
// header: the compiler and the runtime share it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_SCALARS_H
#define DSOPT_RUNTIME_SCALARS_H

/// Indices into the table.
enum dsopt_scalar {
  DSOPT_LR = 0,              ///< learning rate of this step and group
  DSOPT_FACTOR = 1,          ///< gradients are multiplied by it (clip and unscale)
  DSOPT_APPLY = 2,           ///< 1: take the new values, 0: keep the old ones
  DSOPT_WEIGHT_DECAY = 3,    ///< of this group
  DSOPT_BETA1 = 4,           ///< also the momentum of SGD
  DSOPT_ONE_MINUS_BETA1 = 5, ///< 1 - beta1, rounded from double
  DSOPT_BETA2 = 6,
  DSOPT_ONE_MINUS_BETA2 = 7,
  DSOPT_EPS = 8,
  DSOPT_STEP_SIZE = 9,     ///< lr / (1 - beta1^t)
  DSOPT_RSQRT_BIAS2 = 10,  ///< 1 / sqrt(1 - beta2^t)
  DSOPT_DECAY_FACTOR = 11, ///< 1 - lr * weight decay (decoupled)
  DSOPT_FIRST = 12,        ///< 1 in the first applied step (momentum starts as the gradient)
  DSOPT_TRUST = 13,        ///< norm of the parameter / norm of its direction, within bounds
  DSOPT_MOMENTUM = 14,     ///< of Muon, whose companion has betas
  DSOPT_ONE_MINUS_MOMENTUM = 15,
  DSOPT_RATES = 14,  ///< of 0/1 Adam: the sum of the learning rates since ranks met
  DSOPT_SCALARS = 16 ///< floats in a table
};

/// DeepSpeed's bounds of LAMB's ratio.
#define DSOPT_LEAST_TRUST 0.01
#define DSOPT_LARGEST_TRUST 10.0
/// Adafactor has the root of the parameter's mean square there, at least PyTorch's eps[1].
#define DSOPT_LEAST_LENGTH 1e-3

/// Indices into a micro-batch's context: what its random numbers follow from.
enum dsopt_context {
  DSOPT_SEED_LOW = 0,
  DSOPT_SEED_HIGH = 1,
  DSOPT_STEP = 2,
  DSOPT_MICRO_BATCH = 3, ///< of all ranks' in the step
  DSOPT_TRAINING = 4,    ///< 0: dropout keeps everything
  DSOPT_TENSOR_RANK = 5, ///< this rank's coordinate along tp: which elements of whole values its shards have
  DSOPT_SEQUENCE_RANK = 6, ///< this rank's coordinate along sp: which positions its shards have
  DSOPT_CONTEXT = 7        ///< numbers (i32) in a context
};

#endif // DSOPT_RUNTIME_SCALARS_H
