//===- GraphToLinalg.cpp - a kernel's operations as linalg on tensors -----===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_GRAPHTOLINALG
#include "dsopt/Conversion/Passes.h.inc"

namespace {
/// Whether it widens the stored floats of an argument, of any shape, for operations of the kernel. What the
/// kernel returns is computed by a loop of its own.
bool extendsArgument(graph::CastOp cast) {
  Type from = getElementTypeOrSelf(cast.getInput().getType()), to = getElementTypeOrSelf(cast.getType());
  return isa<BlockArgument>(cast.getInput()) && isa<FloatType>(from) && isa<FloatType>(to) &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth() &&
         llvm::none_of(cast->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
}

struct GraphToLinalg : impl::GraphToLinalgBase<GraphToLinalg> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(graph::kIterateAttr) || function.isExternal())
      return;
    for (Operation &op : llvm::make_early_inc_range(function.front().without_terminator())) {
      OpBuilder builder(&op);
      if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
        auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!value || !value.isSplat()) {
          constant.emitOpError("is no splat; a kernel takes it as an argument");
          return signalPassFailure();
        }
        constant.replaceAllUsesWith(arith::ConstantOp::create(builder, op.getLoc(), value).getResult());
      } else if (auto cast = dyn_cast<graph::CastOp>(op); cast && extendsArgument(cast)) {
        // As it is loaded, wherever that is.
        cast.replaceAllUsesWith(
            arith::ExtFOp::create(builder, op.getLoc(), cast.getType(), cast.getInput()).getResult());
      } else if (auto lowerable = dyn_cast<LowerableOpInterface>(op)) {
        Value value = lowerable.buildLinalg(builder, op.getOperands());
        if (!value) {
          op.emitOpError("is a routine of the runtime or a view; it does not belong in a kernel");
          return signalPassFailure();
        }
        op.replaceAllUsesWith(value.getDefiningOp()->getResults());
      } else {
        op.emitOpError("has no lowering to linalg");
        return signalPassFailure();
      }
      op.erase();
    }
  }
};
} // namespace
} // namespace dsopt
