//===- EpilogueRoutines.cpp - products with an epilogue as routines -------===//

#include "GraphRoutines.h"
#include "dsopt/Dialect/Exec/Epilogue.h"
#include "dsopt/Dialect/Graph/Epilogue.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

namespace {
struct EpilogueRoutine : RoutineOpInterface::ExternalModel<EpilogueRoutine, graph::MatMulEpilogueOp> {
  Strides getOperandStrides(Operation *, unsigned operand) const {
    return operand < 2 ? Strides::Matrix : Strides::Contiguous;
  }
  /// A bias goes along the library's lines: rows stay rows.
  Strides getResultStrides(Operation *, unsigned result) const {
    return result == 0 ? Strides::Rows : Strides::Contiguous;
  }
  /// The library has one type for all.
  Storage getOperandStorage(Operation *, unsigned) const { return Storage::Narrow; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Narrow; }
  bool canAccumulate(Operation *, unsigned) const { return false; }

  LogicalResult verifyRoutine(Operation *op) const {
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    if (!type.isF32() && !graph::isNarrowFloat(type))
      return op->emitOpError("is a product of ") << type << ", expected f32, bf16 or f16";
    return success();
  }

  /// Contractions that are added up in one piece need none.
  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &, ArrayRef<Type>) const { return 0; }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto product = cast<graph::MatMulEpilogueOp>(op);
    return exec::GemmEpilogueOp::create(builder, op->getLoc(), product.getKind(),
                                        buffers.of(product.getLhs()), buffers.of(product.getRhs()),
                                        buffers.of(product.getGiven()), buffers.of(product.getResult()),
                                        buffers.of(product.getPreActivation()), /*packed=*/Value(),
                                        product.getTransposeA(), product.getTransposeB(),
                                        /*kernel=*/nullptr);
  }
};
} // namespace

void dsopt::registerEpilogueRoutines(MLIRContext *context) {
  graph::MatMulEpilogueOp::attachInterface<EpilogueRoutine>(*context);
}
