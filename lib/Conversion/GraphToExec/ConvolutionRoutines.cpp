//===- ConvolutionRoutines.cpp - convolutions as routines -----------------===//

#include "GraphRoutines.h"
#include "dsopt/Dialect/Exec/Convolution.h"
#include "dsopt/Dialect/Graph/Convolution.h"

using namespace mlir;
using namespace dsopt;

namespace {
struct ConvolutionRoutine : RoutineOpInterface::ExternalModel<ConvolutionRoutine, graph::ConvolutionOp> {
  Strides getOperandStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  /// The library has one type for all three: narrow where the table has an algorithm for that.
  static Storage storage(Operation *op) {
    ConvolutionShape shape = shapeOfConvolution(cast<graph::ConvolutionOp>(op));
    shape.isNarrow = true;
    return describeConvolution(shape).algorithm == DSOPT_CONVOLUTION_PRODUCTS ? Storage::Wide
                                                                              : Storage::Narrow;
  }
  Storage getOperandStorage(Operation *op, unsigned) const { return storage(op); }
  Storage getResultStorage(Operation *op, unsigned) const { return storage(op); }
  bool canAccumulate(Operation *op, unsigned) const {
    return cast<graph::ConvolutionOp>(op).getKind() == ConvolutionKind::Weight;
  }

  LogicalResult verifyRoutine(Operation *op) const {
    auto convolution = cast<graph::ConvolutionOp>(op);
    Type type = getElementTypeOrSelf(convolution.getType());
    bool isKnown = type.isF32() || type.isBF16();
    if (!isKnown ||
        describeConvolution(shapeOfConvolution(convolution)).algorithm == DSOPT_CONVOLUTION_PRODUCTS)
      return op->emitOpError("is a convolution of ")
             << type << ", expected one that the table of algorithms has";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &, ArrayRef<Type>) const {
    dsopt_convolution sizes = describeConvolution(shapeOfConvolution(cast<graph::ConvolutionOp>(op)));
    return dsopt_convolution_workspace(&sizes);
  }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto convolution = cast<graph::ConvolutionOp>(op);
    dsopt_convolution sizes = describeConvolution(shapeOfConvolution(convolution));
    bool accumulates =
        convolution.getKind() == ConvolutionKind::Weight && buffers.accumulates(convolution.getResult());
    return exec::ConvolutionOp::create(
        builder, op->getLoc(), convolution.getKind(), buffers.of(convolution.getLhs()),
        buffers.of(convolution.getRhs()), buffers.of(convolution.getResult()), buffers.workspace,
        convolution.getStrides(), convolution.getDilations(), convolution.getPads(), convolution.getGroups(),
        sizes.algorithm, convolution.getChannelsLast(), accumulates);
  }
};
} // namespace

void dsopt::registerConvolutionRoutines(MLIRContext *context) {
  graph::ConvolutionOp::attachInterface<ConvolutionRoutine>(*context);
}
