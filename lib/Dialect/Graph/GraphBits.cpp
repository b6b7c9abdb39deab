//===- GraphBits.cpp - what bits are, and places ------------------------------===//

#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt::graph;

static constexpr int64_t kWordBits = 32;

/// Emits an error unless `wide` has a last dimension of 32 more than `packed`, which is of i32.
static LogicalResult verifyBits(Operation *op, Type wide, Type packed) {
  auto elements = cast<RankedTensorType>(wide), words = cast<RankedTensorType>(packed);
  if (words.getElementType().isSignlessInteger(kWordBits) && elements.getRank() == words.getRank() + 1 &&
      elements.getShape().back() == kWordBits && elements.getShape().drop_back() == words.getShape())
    return success();
  return op->emitOpError("has elements of ")
         << wide << " and words of " << packed << ", expected words of i32 and a last dimension of "
         << kWordBits << " beside theirs";
}

LogicalResult SignBitsOp::verify() { return verifyBits(*this, getInput().getType(), getResult().getType()); }
LogicalResult UnpackBitsOp::verify() {
  return verifyBits(*this, getResult().getType(), getInput().getType());
}

LogicalResult BitcastOp::verify() {
  RankedTensorType from = getInput().getType(), to = getResult().getType();
  if (from.getShape() == to.getShape() && from.getElementTypeBitWidth() == to.getElementTypeBitWidth())
    return success();
  return emitOpError("has ") << from << " as " << to << ", expected the same shape and width";
}

LogicalResult IotaOp::verify() {
  int64_t rank = getResult().getType().getRank(), axis = getAxis();
  if (axis >= 0 && axis < rank)
    return success();
  return emitOpError("counts along axis ") << axis << ", expected 0 to " << rank - 1;
}
