//===- LocalSteps.h - what ranks exchange between local steps ---*- C++ -*-===//
//
// 0/1 Adam (Lu et al., 2022). Before the freeze steps between those that reduce whole
// gradients send them as signs. Behind it ranks step by themselves, and join now and then:
// they exchange, as signs, how far they have come.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_LOCALSTEPS_H
#define DSOPT_LIB_TRANSFORMS_WIRE_LOCALSTEPS_H

#include "SignExchange.h"
#include "dsopt/Dialect/Exec/Actions.h"

namespace dsopt {

/// What a bucket has of the optimizer's.
struct LocalState {
  exec::RefAttr gradient, momentum, variance, way;
};
/// Writes an exchange of gradients, which makes the momentum, or of ways from the common point, which the
/// mean of them takes the place of. `out` stands in front of the update.
void exchangeGradients(const LocalState &state, mlir::Type gradient, mlir::StringRef stream,
                       CompressionKernels &kernels, SignExchange &signs);
void exchangeWays(const LocalState &state, mlir::StringRef stream, CompressionKernels &kernels,
                  SignExchange &signs);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_LOCALSTEPS_H
