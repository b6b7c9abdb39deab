//===- LossCalls.cpp - losses as calls ------------------------------------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;

static LogicalResult buildLinearNll(exec::LinearNllOp loss, RuntimeCallBuilder &builder) {
  auto weight = cast<MemRefType>(loss.getWeight().getType());
  int64_t rows = dim(loss.getX(), 0), depth = dim(loss.getX(), 1);
  int64_t classes = weight.getDimSize(loss.getTransposeB() ? 0 : 1);
  auto type = elementTypeOf(loss, loss.getX());
  if (failed(type))
    return failure();
  for (Value other : {loss.getWeight(), loss.getBias(), loss.getXGrad()})
    if (other && getElementTypeOrSelf(other.getType()) != getElementTypeOrSelf(loss.getX().getType()))
      return loss.emitOpError("works on ")
             << loss.getX().getType() << " and " << other.getType() << ", expected one element type";
  SmallVector<int64_t> gradientTypes;
  for (Value gradient : {loss.getWeightGrad(), loss.getBiasGrad()}) {
    auto found = gradient ? elementTypeOf(loss, gradient) : int64_t(DSOPT_F32);
    if (failed(found))
      return failure();
    gradientTypes.push_back(*found);
  }
  int64_t labelBytes = memrefType(loss.getLabels()).getElementTypeBitWidth() / 8;
  dsopt_linear_nll sizes{
      rows,       depth, classes,          loss.getTransposeB(), int64_t(loss.getIgnoreIndex()),
      labelBytes, *type, gradientTypes[0], gradientTypes[1]};
  if (failed(verifyWorkspace(loss, loss.getWorkspace(), linearNllWorkspace(sizes, isForDevice(loss)))))
    return failure();
  SmallVector<Value> arguments{
      builder.descriptor("loss", {rows, depth, classes, loss.getTransposeB(), int64_t(loss.getIgnoreIndex()),
                                  labelBytes, *type, gradientTypes[0], gradientTypes[1]})};
  for (Value memref : {loss.getX(), loss.getWeight(), loss.getBias(), loss.getLabels(), loss.getGrad(),
                       loss.getLoss(), loss.getXGrad(), loss.getWeightGrad(), loss.getBiasGrad()})
    arguments.push_back(builder.pointer(memref));
  arguments.push_back(builder.pointer(loss.getWorkspace()));
  arguments.push_back(builder.accumulates(loss.getWeightIntoGradient()));
  arguments.push_back(builder.accumulates(loss.getBiasIntoGradient()));
  builder.call("dsopt_rt_linear_nll", arguments);
  return success();
}

/// Rows, depth and classes; its products are made some rows at a time.
static CallDescription describeLinearNll(exec::LinearNllOp loss) {
  auto x = cast<MemRefType>(loss.getX().getType()), weight = cast<MemRefType>(loss.getWeight().getType());
  bool transposed = loss.getTransposeB();
  int64_t rows = x.getDimSize(0), depth = x.getDimSize(1), classes = weight.getDimSize(transposed ? 0 : 1);
  CallDescription call = {"linear_nll", shapeText({rows, depth, classes}), x.getElementType()};
  int64_t chunk = linearNllChunk(rows, classes, isForDevice(loss)), left = rows % chunk;
  for (auto [count, some] : {std::pair(rows / chunk, chunk), std::pair(int64_t(left ? 1 : 0), left)}) {
    if (!count)
      continue;
    call.products.append({count, 1, some, classes, depth, 0, transposed});
    if (loss.getXGrad())
      call.products.append({count, 1, some, depth, classes, 0, !transposed});
    if (loss.getWeightGrad() && transposed)
      call.products.append({count, 1, classes, depth, some, 1, 0});
    else if (loss.getWeightGrad())
      call.products.append({count, 1, depth, classes, some, 1, 0});
  }
  // All but the workspace.
  call.bytes = sumBytes(loss->getOperands().drop_back());
  return call;
}

template <typename Op> static LogicalResult buildCtc(Op ctc, RuntimeCallBuilder &builder) {
  constexpr bool isGradient = std::is_same_v<Op, exec::CtcGradOp>;
  auto targets = cast<MemRefType>(ctc.getTargets().getType());
  dsopt_ctc d{dim(ctc.getLogs(), 0),     dim(ctc.getLogs(), 1),  dim(ctc.getLogs(), 2),
              targets.getShape().back(), targets.getRank() == 1, int64_t(ctc.getBlank()),
              ctc.getZeroInfinity()};
  if (failed(verifyWorkspace(ctc, ctc.getWorkspace(), ctcWorkspace(d, isGradient, isForDevice(ctc)))))
    return failure();
  SmallVector<Value> arguments{builder.descriptor(
      "ctc", {d.frames, d.batch, d.classes, d.targets, d.concatenated, d.blank, d.zero_infinity})};
  for (Value operand : ctc->getOperands())
    arguments.push_back(builder.pointer(operand));
  builder.call(isGradient ? "dsopt_rt_ctc_grad" : "dsopt_rt_ctc", arguments);
  return success();
}

namespace {
struct LinearNllCall : RuntimeCallOpInterface::ExternalModel<LinearNllCall, exec::LinearNllOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildLinearNll(cast<exec::LinearNllOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeLinearNll(cast<exec::LinearNllOp>(op)); }
};

/// What is written comes last.
template <typename Op> struct CtcCall : RuntimeCallOpInterface::ExternalModel<CtcCall<Op>, Op> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildCtc(cast<Op>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeByResult(op, op->getOperands().back()); }
};
} // namespace

void dsopt::registerLossCalls(MLIRContext *context) {
  exec::LinearNllOp::attachInterface<LinearNllCall>(*context);
  exec::CtcOp::attachInterface<CtcCall<exec::CtcOp>>(*context);
  exec::CtcGradOp::attachInterface<CtcCall<exec::CtcGradOp>>(*context);
}
