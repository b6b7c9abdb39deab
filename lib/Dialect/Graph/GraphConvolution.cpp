//===- GraphConvolution.cpp - convolutions: verifier and cost -------------===//

#include "dsopt/Dialect/Graph/Convolution.h"

#include "GraphSupport.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

LogicalResult ConvolutionOp::verify() {
  auto [x, w, y] = convolved(*this);
  Type type = getElementTypeOrSelf(x.getType());
  for (Value other : {w, y})
    if (getElementTypeOrSelf(other.getType()) != type)
      return emitOpError("has values of types ")
             << x.getType() << " and " << other.getType() << ", expected one element type";
  if (const char *expected = checkConvolution(shapeOfConvolution(*this)))
    return emitOpError("convolves ") << x.getType() << " with " << w.getType() << " to " << y.getType()
                                     << " (strides [" << getStrides() << "], dilations [" << getDilations()
                                     << "], pads [" << getPads() << "], " << getGroups()
                                     << " groups), expected " << expected;
  return success();
}

namespace {
/// Each element of y takes those of the weight that are of its channel, or gives them; gradients do the same.
struct ConvolutionCost : CostedOpInterface::ExternalModel<ConvolutionCost, ConvolutionOp> {
  int64_t getFlops(Operation *op) const {
    auto [x, w, y] = convolved(cast<ConvolutionOp>(op));
    RankedTensorType weight = tensorType(w);
    return 2 * numElements(y.getType()) * (numElements(weight) / weight.getDimSize(0));
  }
};
} // namespace

void dsopt::graph::attachConvolutionCost(MLIRContext *context) {
  ConvolutionOp::attachInterface<ConvolutionCost>(*context);
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphConvolutionOps.cpp.inc"
