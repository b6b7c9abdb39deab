//===- DecomposeComposites.cpp - composites to primitives -----------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Fuse/Passes.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
/// Notes what a decomposition builds.
struct Created : OpBuilder::Listener {
  SmallVector<Operation *> ops;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override { ops.push_back(op); }
};

struct DecomposeComposites : impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() override {
    SmallVector<Operation *> composites;
    // What a composite holds goes with it.
    getOperation().walk<WalkOrder::PreOrder>([&](DecomposableOpInterface op) {
      composites.push_back(op);
      return WalkResult::skip();
    });
    while (!composites.empty()) {
      Operation *op = composites.pop_back_val();
      Created created;
      OpBuilder builder(op);
      builder.setListener(&created);
      SmallVector<Value> results = cast<DecomposableOpInterface>(op).decompose(builder);
      for (Operation *part : created.ops) {
        for (StringRef name : {graph::kBlockAttr, graph::kPhaseAttr})
          if (Attribute attr = op->getAttr(name))
            part->setAttr(name, attr);
        if (isa<DecomposableOpInterface>(part))
          composites.push_back(part);
      }
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};
} // namespace
} // namespace dsopt
