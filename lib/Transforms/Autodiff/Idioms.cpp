//===- Idioms.cpp - what the passes that raise idioms share ---------------===//

#include "Idioms.h"

#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;

namespace dsopt::idioms {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<graph::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

std::optional<double> splatOf(Value value) {
  auto constant = value.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat())
    return std::nullopt;
  APFloat number = elements.getSplatValue<APFloat>();
  bool inexact;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

bool isClose(double value, double expected) {
  return std::abs(value - expected) <= 2e-7 * std::abs(expected);
}

bool isSplat(Value value, double number) {
  auto splat = splatOf(value);
  return splat && isClose(*splat, number);
}

Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

void raised(Operation *op, StringRef idiom) {
  remark::passed(op->getLoc(), remark::RemarkOpts::name(idiom).category("idiom"))
      << "raised to one operation";
}

void missed(Operation *op, StringRef idiom, StringRef why) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name(idiom).category("idiom")) << why;
}

func::FuncOp forwardOf(ModuleOp module, StringRef pass) {
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  if (forward && forward.getBody().hasOneBlock())
    return forward;
  module.emitError() << pass << " expects a function @forward with one body";
  return nullptr;
}

void eraseDead(func::FuncOp forward) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace dsopt::idioms
