//===- ScaledMomentum.h - momenta of unlike lengths as signs ----*- C++ -*-===//
//
// 1-bit LAMB (Li et al., 2021) sends the momenta of a bucket's parameters, which share a
// scale, as multiples of a coefficient of each parameter, so that all are about as long.
// Of what comes back follows the gradient that the fresh variance goes on with.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_SCALEDMOMENTUM_H
#define DSOPT_LIB_TRANSFORMS_WIRE_SCALEDMOMENTUM_H

#include "SignExchange.h"

namespace dsopt {

/// An update's state of that number: states are behind the master.
exec::RefAttr updateState(exec::UpdateOp update, dist::BucketOp bucket, unsigned number);

/// The DSOPT_COEFFICIENTS of each of a bucket's parameters, in the order of its ranges; outlives steps.
exec::RefAttr declareCoefficients(dist::BucketOp bucket, mlir::StringRef memory, ProgramBuilder &out);

/// Writes the exchange of a bucket's momentum in front of the direction that goes by it.
void exchangeScaledMomentum(exec::UpdateOp direction, dist::BucketOp bucket, exec::RefAttr coefficients,
                            ProgramBuilder &out, CompressionKernels &kernels, SignExchange &signs);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_SCALEDMOMENTUM_H
