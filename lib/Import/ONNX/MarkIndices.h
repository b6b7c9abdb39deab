//===- MarkIndices.h - facts about look-ups that the operators do not say -===//

#ifndef DSOPT_LIB_IMPORT_ONNX_MARKINDICES_H
#define DSOPT_LIB_IMPORT_ONNX_MARKINDICES_H

#include "dsopt/Import/ImportONNX.h"

namespace dsopt::onnx_import {

/// Marks the look-ups of embeddings that have a padding row. Emits an error
/// where a name matches no embedding or a row lies outside it.
llvm::LogicalResult markPadding(mlir::ModuleOp module, const ImportOptions &options);

/// Sets `graph.bound` (i64) on inputs of @forward that index into something: their
/// values must be below it. What is looked up has `graph.least` too: 0 in a
/// parameter, where PyTorch's embeddings take no index from the end, else as many
/// below 0 as there are rows, as ONNX has it.
void markBounds(mlir::ModuleOp module);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_MARKINDICES_H
