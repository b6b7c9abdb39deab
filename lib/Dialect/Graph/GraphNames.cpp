//===- GraphNames.cpp - what values are called in print -------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Names.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace dsopt::graph;

namespace {
/// What is read has the name of the parameter or state.
struct ReadNames : OpAsmOpInterface::ExternalModel<ReadNames, ReadOp> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    auto read = cast<ReadOp>(op);
    setName(read.getResult(), read.getState());
  }
};

/// The results of a call have the callee's; the first of several names them all.
template <typename Op> struct CallNames : OpAsmOpInterface::ExternalModel<CallNames<Op>, Op> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    if (op->getNumResults())
      setName(op->getResult(0), cast<Op>(op).getCallee());
  }
};
} // namespace

void dsopt::graph::registerNames(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    ReadOp::attachInterface<ReadNames>(*context);
    KernelOp::attachInterface<CallNames<KernelOp>>(*context);
    RunOp::attachInterface<CallNames<RunOp>>(*context);
  });
}
