//===- CompiledForward.h - a model's outputs by compiled kernels -*- C++ -*-===//
//
// Takes @forward as it was imported through the passes that make kernels and
// segments, loads the machine code into this process and calls it once: what a
// training program does for one block, without a schedule.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_FORWARD_COMPILEDFORWARD_H
#define DSOPT_TOOLS_DSOPT_FORWARD_COMPILEDFORWARD_H

#include "dsopt/Target/Target.h"
#include "mlir/IR/BuiltinTypes.h"

#include <map>

namespace dsopt {

/// The bytes of a tensor and their type; a bool takes a byte.
struct HostTensor {
  mlir::RankedTensorType type;
  std::vector<char> bytes;
};

/// Compiles `@forward` of an imported module and runs it on `inputs` (by name in the
/// model), once with each of these numbers of threads. Emits an error and fails where
/// that is impossible or where the bytes differ.
llvm::FailureOr<std::vector<HostTensor>> runForward(mlir::ModuleOp module,
                                                    const std::map<std::string, std::vector<char>> &inputs,
                                                    llvm::ArrayRef<int> threads);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_FORWARD_COMPILEDFORWARD_H
