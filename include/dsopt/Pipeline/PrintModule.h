//===- PrintModule.h - a module as people read it ---------------*- C++ -*-===//
#ifndef DSOPT_PIPELINE_PRINTMODULE_H
#define DSOPT_PIPELINE_PRINTMODULE_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt {
/// No line that -emit prints is longer than this many bytes, but for what has no space in it.
inline constexpr size_t kPrintedWidth = 160;

/// Prints a module; what is longer than a line goes on in the next one, indented. It reads back as it is.
void printModule(mlir::ModuleOp module, llvm::raw_ostream &os);
} // namespace dsopt

#endif // DSOPT_PIPELINE_PRINTMODULE_H
