//===- GraphConvolution.cpp - convolutions: verifier and cost -------------===//

#include "dsopt/Dialect/Graph/Convolution.h"

#include "GraphSupport.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

LogicalResult ConvolutionOp::verify() { return verifyConvolution(*this); }

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
