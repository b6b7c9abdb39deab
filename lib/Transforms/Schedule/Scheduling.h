//===- Scheduling.h - the steps from blocks to programs ---------*- C++ -*-===//
//
// What the pass of the same name does to a module, by the module's options; the planner
// calls them on a copy. Each emits an error where it fails.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_SCHEDULING_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_SCHEDULING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// What takes about as long to copy as an action takes to start.
constexpr int64_t kLeastOffloadedBytes = 65536;

/// The functions of a micro-batch: those of training, evaluation and variants.
llvm::SmallVector<mlir::func::FuncOp> orderedFunctions(mlir::ModuleOp module);
/// Writes the programs of these functions, which stay.
llvm::LogicalResult orderPipeline(mlir::ModuleOp module);
llvm::LogicalResult shareGathers(mlir::ModuleOp module);
llvm::LogicalResult placeReductions(mlir::ModuleOp module);
/// Writes another program beside each step's where updates lag.
void delayUpdates(mlir::ModuleOp module);
/// Writes another program beside each step's where the optimizer's variance freezes.
void freezeUpdates(mlir::ModuleOp module);
/// Writes what the momenta of frozen programs are exchanged by.
llvm::LogicalResult compressGradients(mlir::ModuleOp module);
/// Whether updates need what all agree on, unless they lag a step behind: a factor of clipped gradients, or
/// that those of a scaled loss are finite.
bool updatesNeedAgreement(mlir::ModuleOp module);
/// Takes update kernels from @update, which stays.
llvm::LogicalResult finishStep(mlir::ModuleOp module);
/// Leaves copies of segments that it changes; finds them again when it is asked anew.
llvm::LogicalResult mergeTiedGradients(mlir::ModuleOp module);
llvm::LogicalResult expandCollectives(mlir::ModuleOp module);
llvm::LogicalResult prefetchGathers(mlir::ModuleOp module);
llvm::LogicalResult gatherByNode(mlir::ModuleOp module);
llvm::LogicalResult throttleReductions(mlir::ModuleOp module);
llvm::LogicalResult offloadGathers(mlir::ModuleOp module);
llvm::LogicalResult packWeights(mlir::ModuleOp module);
llvm::LogicalResult offloadUpdates(mlir::ModuleOp module);
/// Values of at least so many bytes.
llvm::LogicalResult offloadActivations(mlir::ModuleOp module, int64_t leastBytes = kLeastOffloadedBytes);
llvm::LogicalResult insertWaits(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_SCHEDULING_H
