//===- RuntimeCalls.h - what the models of calls share ----------*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_EXECTOLLVM_RUNTIMECALLS_H
#define DSOPT_LIB_CONVERSION_EXECTOLLVM_RUNTIMECALLS_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt {
inline mlir::MemRefType memrefType(mlir::Value memref) {
  return mlir::cast<mlir::MemRefType>(memref.getType());
}
inline int64_t elements(mlir::Value memref) { return memrefType(memref).getNumElements(); }
inline int64_t dim(mlir::Value memref, int64_t index) { return memrefType(memref).getDimSize(index); }

/// The runtime's number for a buffer's element type, f32, bf16 or f16; else an error at `op`.
llvm::FailureOr<int64_t> elementTypeOf(mlir::Operation *op, mlir::Value memref);
/// An error at `op` where its workspace (null: none) has less than `needed` bytes.
llvm::LogicalResult verifyWorkspace(mlir::Operation *op, mlir::Value workspace, int64_t needed);

/// "8x4x2".
std::string shapeText(llvm::ArrayRef<int64_t> shape);
/// Bytes of buffers.
int64_t sumBytes(mlir::ValueRange memrefs);
/// Of a call that reports say no more of than what it writes: the shape of `written`, all operands' bytes.
CallDescription describeByResult(mlir::Operation *op, mlir::Value written);

// One for each file.
void registerConvolutionCalls(mlir::MLIRContext *context);
void registerProductCalls(mlir::MLIRContext *context);
void registerAttentionCalls(mlir::MLIRContext *context);
void registerLossCalls(mlir::MLIRContext *context);
void registerScatterCalls(mlir::MLIRContext *context);
} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_EXECTOLLVM_RUNTIMECALLS_H
