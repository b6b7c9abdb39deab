//===- Dist.h - the dist dialect: where state lives -------------*- C++ -*-===//
//
// The one header of the dialect. See DistOps.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_DIST_DIST_H
#define DSOPT_DIALECT_DIST_DIST_H

#include "dsopt/Interfaces/Reductions.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
/// Ranks along an axis of the grid that `op` is compiled for: an option of its module.
int64_t getAxisSize(mlir::Operation *op, llvm::StringRef axis);
} // namespace dsopt::dist

#include "dsopt/Dialect/Dist/DistDialect.h.inc"
#include "dsopt/Dialect/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Dist/DistAttrs.h.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Dist/DistOps.h.inc"

#endif // DSOPT_DIALECT_DIST_DIST_H
