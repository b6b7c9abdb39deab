//===- Optimizers.h - what update rules are asked ---------------*- C++ -*-===//
//
// The types that OptimizerOpInterface talks in, and the order of what an update
// kernel is given.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPTIMIZERS_H
#define DSOPT_INTERFACES_OPTIMIZERS_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt {
/// A value that is kept for each element of a parameter.
struct OptimizerState {
  llvm::StringRef role; ///< m, v, momentum
  mlir::Type element;
};

/// A value that is kept for a whole parameter.
struct WholeState {
  llvm::StringRef role; ///< row_var, col_var, variance
  mlir::RankedTensorType type;
};

/// What an operand of an update is.
enum class UpdateRole { Parameter, Gradient, State, Scalars };

/// How much of a parameter an update has to see at once.
enum class UpdateScope {
  Elements,   ///< any slice: each element by itself
  Parameters, ///< norms of whole parameters
  Matrices,   ///< whole matrices
  Tensors,    ///< whole parameters of any rank, and their norms
};
/// "each element by itself" and so on, for messages.
llvm::StringRef describe(UpdateScope scope);

/// The arguments of an update kernel and the buffers of exec.update: these, then the states, of which a
/// master copy of the parameter is the first; a kernel's last argument are the scalars.
inline constexpr unsigned kUpdatedParameter = 0, kUpdateGradient = 1, kFirstUpdateState = 2;
} // namespace dsopt

#endif // DSOPT_INTERFACES_OPTIMIZERS_H
