//===- CollectivePlan.h - what each collective of a step sends --*- C++ -*-===//
#ifndef DSOPT_LIB_PIPELINE_COLLECTIVEPLAN_H
#define DSOPT_LIB_PIPELINE_COLLECTIVEPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace dsopt {
/// Writes an object for each collective and message of all kinds of steps, as elements of an array.
void writeCollectives(mlir::ModuleOp module, llvm::json::OStream &json);
} // namespace dsopt

#endif // DSOPT_LIB_PIPELINE_COLLECTIVEPLAN_H
