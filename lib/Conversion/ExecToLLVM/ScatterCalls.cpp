//===- ScatterCalls.cpp - scatters as calls -------------------------------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;

/// How the runtime's ABI spells a mode.
static int64_t codeOf(ScatterMode mode) {
  switch (mode) {
  case ScatterMode::Set:
    return DSOPT_SCATTER_SET;
  case ScatterMode::Add:
    return DSOPT_SCATTER_ADD;
  case ScatterMode::Mul:
    return DSOPT_SCATTER_MUL;
  case ScatterMode::Min:
    return DSOPT_SCATTER_MIN;
  case ScatterMode::Max:
    return DSOPT_SCATTER_MAX;
  }
  llvm_unreachable("a mode that does not exist");
}

static LogicalResult buildScatterAdd(exec::ScatterAddOp scatter, RuntimeCallBuilder &builder) {
  auto typeRows = elementTypeOf(scatter, scatter.getRows()),
       typeResult = elementTypeOf(scatter, scatter.getResult());
  if (failed(typeRows) || failed(typeResult))
    return failure();
  auto indices = cast<MemRefType>(scatter.getIndices().getType());
  dsopt_scatter_add d{};
  d.count = indices.getNumElements();
  d.size = dim(scatter.getResult(), 0);
  d.width = d.size ? elements(scatter.getResult()) / d.size : 0;
  d.index_bytes = indices.getElementTypeBitWidth() / 8;
  d.type_rows = *typeRows;
  d.type_result = *typeResult;
  d.sums = scatter.getSums();
  if (elements(scatter.getRows()) != d.count * d.width)
    return scatter.emitOpError("has rows of ")
           << elements(scatter.getRows()) << " elements, expected " << d.count << " rows of " << d.width;
  if (failed(verifyWorkspace(scatter, scatter.getWorkspace(), scatterAddWorkspace(d, isForDevice(scatter)))))
    return failure();
  Value descriptor = builder.descriptor(
      "scatter_add", {d.count, d.width, d.size, d.index_bytes, d.type_rows, d.type_result, d.sums});
  builder.call("dsopt_rt_scatter_add",
               {descriptor, builder.pointer(scatter.getRows()), builder.pointer(scatter.getIndices()),
                builder.pointer(scatter.getResult()), builder.pointer(scatter.getWorkspace()),
                builder.accumulates(scatter.getIntoGradient())});
  return success();
}

namespace {
struct ScatterAddCall : RuntimeCallOpInterface::ExternalModel<ScatterAddCall, exec::ScatterAddOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildScatterAdd(cast<exec::ScatterAddOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const {
    return describeByResult(op, cast<exec::ScatterAddOp>(op).getResult());
  }
};

struct ScatterCall : RuntimeCallOpInterface::ExternalModel<ScatterCall, exec::ScatterOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    auto scatter = cast<exec::ScatterOp>(op);
    auto data = cast<MemRefType>(scatter.getData().getType());
    auto indices = cast<MemRefType>(scatter.getIndices().getType());
    int64_t mode = codeOf(scatter.getMode());
    int64_t elementBytes = graph::elementBytes(data.getElementType());
    Value descriptor =
        builder.descriptor("scatter", {indices.getNumElements(), data.getDimSize(1), data.getDimSize(0),
                                       indices.getElementTypeBitWidth() / 8, elementBytes,
                                       int64_t(isa<FloatType>(data.getElementType())), mode});
    builder.call("dsopt_rt_scatter",
                 {descriptor, builder.pointer(scatter.getData()), builder.pointer(scatter.getIndices()),
                  builder.pointer(scatter.getUpdates()), builder.pointer(scatter.getResult())});
    return success();
  }
  CallDescription describeCall(Operation *op) const {
    return describeByResult(op, cast<exec::ScatterOp>(op).getResult());
  }
};
} // namespace

void dsopt::registerScatterCalls(MLIRContext *context) {
  exec::ScatterOp::attachInterface<ScatterCall>(*context);
  exec::ScatterAddOp::attachInterface<ScatterAddCall>(*context);
}
