//===- GraphRoutines.h - what the models of routines share ------*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_GRAPHTOEXEC_GRAPHROUTINES_H
#define DSOPT_LIB_CONVERSION_GRAPHTOEXEC_GRAPHROUTINES_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt {
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// A routine that takes everything contiguous and wide and writes to no gradient.
template <typename Model, typename Op> struct PlainRoutine : RoutineOpInterface::ExternalModel<Model, Op> {
  Strides getOperandStrides(mlir::Operation *, unsigned) const { return Strides::Contiguous; }
  Strides getResultStrides(mlir::Operation *, unsigned) const { return Strides::Contiguous; }
  Storage getOperandStorage(mlir::Operation *, unsigned) const { return Storage::Wide; }
  Storage getResultStorage(mlir::Operation *, unsigned) const { return Storage::Wide; }
  bool canAccumulate(mlir::Operation *, unsigned) const { return false; }
};

/// A buffer under another contiguous shape.
inline mlir::Value viewAs(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref,
                          mlir::MemRefType type) {
  return memref.getType() == type ? memref : mlir::Value(exec::ViewOp::create(builder, loc, type, memref));
}

// One for each file.
void registerConvolutionRoutines(mlir::MLIRContext *context);
void registerEpilogueRoutines(mlir::MLIRContext *context);
void registerProductRoutines(mlir::MLIRContext *context);
void registerAttentionRoutines(mlir::MLIRContext *context);
void registerLossRoutines(mlir::MLIRContext *context);
void registerScatterRoutines(mlir::MLIRContext *context);
} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_GRAPHTOEXEC_GRAPHROUTINES_H
