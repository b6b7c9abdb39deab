//===- GraphOps.cpp - the generated parts of the operations ---------------===//

#include "GraphSupport.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt::graph;

LogicalResult dsopt::graph::verifyInferredTypes(Operation *op) {
  SmallVector<Type> expected;
  if (failed(cast<InferTypeOpInterface>(op).inferReturnTypes(
          op->getContext(), op->getLoc(), op->getOperands(), op->getRawDictionaryAttrs(),
          op->getPropertiesStorage(), op->getRegions(), expected)))
    return failure();
  for (auto [i, type] : llvm::enumerate(expected)) {
    auto wide = [&](Type narrow) {
      auto tensor = cast<RankedTensorType>(narrow);
      return RankedTensorType::get(tensor.getShape(), Float32Type::get(op->getContext()));
    };
    // Products add in fp32: the sums may be kept as they are.
    bool keepsSums = isa<MatMulOp>(op) && isNarrowFloat(getElementTypeOrSelf(type)) &&
                     op->getResult(i).getType() == wide(type);
    if (op->getResult(i).getType() != type && !keepsSums)
      return op->emitOpError("has result ")
             << i << " of type " << op->getResult(i).getType() << ", expected " << type;
  }
  return success();
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphOps.cpp.inc"
