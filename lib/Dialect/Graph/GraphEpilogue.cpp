//===- GraphEpilogue.cpp - products with an epilogue: verifier and cost ---===//

#include "dsopt/Dialect/Graph/Epilogue.h"

#include "GraphSupport.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

LogicalResult MatMulEpilogueOp::verify() { return verifyEpilogue(*this); }

namespace {
/// Those of the product: what an epilogue adds is hidden behind them.
struct EpilogueCost : CostedOpInterface::ExternalModel<EpilogueCost, MatMulEpilogueOp> {
  int64_t getFlops(Operation *op) const {
    auto [m, n, k] = extentsOf(cast<MatMulEpilogueOp>(op));
    return 2 * m * n * k;
  }
};
} // namespace

void dsopt::graph::attachEpilogueCost(MLIRContext *context) {
  MatMulEpilogueOp::attachInterface<EpilogueCost>(*context);
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphEpilogueOps.cpp.inc"
