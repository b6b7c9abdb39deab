//===- Assemble.h - PTX to a cubin ------------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_TARGET_ASSEMBLE_H
#define DSOPT_LIB_TARGET_ASSEMBLE_H

#include "dsopt/Target/Target.h"

namespace dsopt {
/// What NVIDIA's ptxas makes of PTX, and what it says of it.
struct Assembled {
  std::string error; ///< empty: none
  std::string cubin;
  std::string said;                              ///< its report (-v)
  int64_t registers = 0, shared = 0, spills = 0; ///< as DeviceImage says them
};

/// The figures of each kernel in a report of ptxas.
KernelFigures readKernelFigures(llvm::StringRef said);

/// Runs `assembler`, or takes the result from the cache.
Assembled assemble(llvm::StringRef assembler, llvm::StringRef ptx, TargetAttr target,
                   const ObjectOptions &options);
} // namespace dsopt

#endif // DSOPT_LIB_TARGET_ASSEMBLE_H
