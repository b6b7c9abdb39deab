//===- Plan.h - what a program will take and send ---------------*- C++ -*-===//
//
// The plan of CONTRACT.md section 5, read off the programs of a module.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PIPELINE_PLAN_H
#define DSOPT_PIPELINE_PLAN_H

#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Target/Target.h"

namespace dsopt {

/// What every terminal has: no line of a plan's table is wider unless more columns are given.
constexpr size_t kLeastColumns = 80;

/// Prints the plan of a module with planned programs and a target: as JSON, or as a table that wide.
llvm::LogicalResult printPlan(mlir::ModuleOp module, llvm::raw_ostream &out, bool json,
                              size_t columns = kLeastColumns);

/// Prints what each collective and message of a step sends and what that stands for, for each kind of step
/// that there is.
void printCollectives(mlir::ModuleOp module, llvm::raw_ostream &out);

/// Prints where each parameter is cut in tensor shards, why others are whole, and what the shards send, for a
/// module in exec form.
void printSharding(mlir::ModuleOp module, llvm::raw_ostream &out);

/// Bytes a second of a link's rate as it is spelled: 1Gb/s, 25Gb/s, 800Mb/s, 5GB/s. None of what is no rate.
std::optional<double> parseLink(llvm::StringRef text);

/// Prints what a step would take with more and more computed again in backward (`-recompute`), for a module
/// in dist form with a target. Emits an error where a layout has no plan.
llvm::LogicalResult printRecomputeCurve(mlir::ModuleOp module, llvm::raw_ostream &out);

/// Prints what each call of a step takes at the limits of GPUs, for a module in the LLVM dialect whose target
/// is a device. `assembler` (ptxas; empty: none) says how many registers kernels have.
llvm::LogicalResult printKernels(mlir::ModuleOp module, const ObjectOptions &options,
                                 llvm::StringRef assembler, llvm::raw_ostream &out);

} // namespace dsopt

#endif // DSOPT_PIPELINE_PLAN_H
