//===- Dist.h - the dist dialect: where state lives -------------*- C++ -*-===//
//
// The one header of the dialect. See DistOps.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_DIST_DIST_H
#define DSOPT_DIALECT_DIST_DIST_H

#include "dsopt/Interfaces/Reductions.h"
#include "dsopt/Runtime/Grid.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dsopt {
/// Factors of axes are parameters of attributes.
inline llvm::hash_code hash_value(const AxisPart &part) {
  return llvm::hash_combine(part.axis, part.part, part.count);
}
inline llvm::hash_code hash_value(const AxisSteps &steps) {
  return llvm::hash_combine_range(steps.begin(), steps.end());
}
} // namespace dsopt

namespace dsopt::dist {
/// On a block's functions: the pipeline stage (i64) that runs the block.
inline constexpr llvm::StringLiteral kStageAttr = "dist.stage";
/// The chunk of its block among those of the model, where stages have several; else a stage is a chunk.
inline constexpr llvm::StringLiteral kChunkAttr = "dist.chunk";
/// The chunk of a block function, or of its segment; none where it has no stage.
std::optional<int64_t> getChunk(mlir::Operation *function);
/// Slices, parameter offsets and thread ranges are multiples of this many
/// elements (DESIGN 2.1 rule 3).
inline constexpr int64_t kGranule = 64;
/// Up to cut-rows: that tensor shards meet in an operation, which reads a whole value for each or ends a sum.
inline constexpr llvm::StringLiteral kTensorAttr = "dist.tensor";
/// What the grid of a module is called.
inline constexpr llvm::StringLiteral kGrid = "grid";
/// The grid that `op` is compiled for: its module's, or that of the module around it; without one a rank
/// alone.
Grid getGrid(mlir::Operation *op);
/// Ranks that a grid has at most.
inline constexpr int64_t kMostRanks = INT64_C(1) << 28;
} // namespace dsopt::dist

#include "dsopt/Dialect/Dist/DistDialect.h.inc"
#include "dsopt/Dialect/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Dist/DistAttrs.h.inc"

namespace dsopt {
class ProgramBuilder;
} // namespace dsopt
#include "dsopt/Dialect/Dist/ValueCollectiveOpInterface.h.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Dist/DistOps.h.inc"

namespace dsopt::dist {
/// Axes that parameters are cut over where nothing else is said: all that data and tokens are spread over.
AxesAttr getDataAxes(mlir::MLIRContext *context);
/// Emits an error where the grid of `op` has no such factors of axes.
llvm::LogicalResult verifyAxes(mlir::Operation *op, AxesAttr axes);
} // namespace dsopt::dist

#endif // DSOPT_DIALECT_DIST_DIST_H
