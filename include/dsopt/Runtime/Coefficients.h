//===- Coefficients.h - what 1-bit LAMB keeps by parameter ------*- C -*-===//
//
// C, no other header: the compiler and the runtime share it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_COEFFICIENTS_H
#define DSOPT_RUNTIME_COEFFICIENTS_H

/// Numbers of each parameter, f32, one after the other, in the order of a bucket.
enum dsopt_coefficient {
  DSOPT_FROZEN_TRUST = 0,   ///< a mean of the ratios of norms before the freeze
  DSOPT_LAST_FACTOR = 1,    ///< by which the step before multiplied it
  DSOPT_MOMENTUM_SCALE = 2, ///< by which momenta are multiplied while they travel
  DSOPT_COEFFICIENTS = 3
};

#endif // DSOPT_RUNTIME_COEFFICIENTS_H
