//===- GraphGradientShapes.cpp - types of gradients that are given --------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt::graph;

LogicalResult StopGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  types.push_back(tensorType(adaptor.getInput()));
  return success();
}

OpFoldResult StopGradientOp::fold(FoldAdaptor adaptor) {
  if (Attribute constant = adaptor.getInput())
    return constant;
  return getInput().getDefiningOp<StopGradientOp>() ? getInput() : OpFoldResult();
}

LogicalResult CustomGradientOp::verify() {
  if (getResultTypes() != getValues().getTypes())
    return emitOpError("has results of types ")
           << getResultTypes() << ", expected its values' " << getValues().getTypes();
  SmallVector<Type> arguments(getSaved().getTypes());
  for (Type type : getResultTypes())
    if (isa<FloatType>(getElementTypeOrSelf(type)))
      arguments.push_back(type);
  Block &body = getBackward().front();
  if (body.getArgumentTypes() != TypeRange(arguments))
    return emitOpError("has a backward with arguments of types ")
           << body.getArgumentTypes() << ", expected what is saved and the results' gradients, " << arguments;
  TypeRange yielded = body.getTerminator()->getOperandTypes();
  if (yielded != getInputs().getTypes())
    return emitOpError("has a backward that yields ")
           << yielded << ", expected its inputs' types " << getInputs().getTypes();
  return success();
}
