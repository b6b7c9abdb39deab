//===- ConvolutionCalls.cpp - convolutions as calls -----------------------===//

#include "RuntimeCalls.h"
#include "dsopt/Dialect/Exec/Convolution.h"
#include "dsopt/Interfaces/Target.h"

#include <cstring>

using namespace mlir;
using namespace dsopt;

static LogicalResult buildConvolution(exec::ConvolutionOp convolution, RuntimeCallBuilder &builder) {
  if (!isForDevice(convolution))
    return convolution.emitOpError("is for a device, expected products on a host");
  dsopt_convolution d = describeConvolution(shapeOfConvolution(convolution));
  for (Value memref : {convolution.getLhs(), convolution.getRhs(), convolution.getResult()}) {
    auto type = elementTypeOf(convolution, memref);
    if (failed(type))
      return failure();
    if (*type != d.type)
      return convolution.emitOpError("convolves ")
             << convolution.getLhs().getType() << " and " << convolution.getRhs().getType() << " to "
             << convolution.getResult().getType() << ", expected one element type";
  }
  d.algorithm = convolution.getAlgorithm();
  if (failed(verifyWorkspace(convolution, convolution.getWorkspace(), dsopt_convolution_workspace(&d))))
    return failure();
  static_assert(sizeof(d) % sizeof(int64_t) == 0, "every field takes 8 bytes");
  int64_t fields[sizeof(d) / sizeof(int64_t)];
  std::memcpy(fields, &d, sizeof(d));
  builder.call("dsopt_rt_convolution",
               {builder.descriptor("convolution", fields), builder.pointer(convolution.getLhs()),
                builder.pointer(convolution.getRhs()), builder.pointer(convolution.getResult()),
                builder.pointer(convolution.getWorkspace()),
                builder.accumulates(convolution.getIntoGradient())});
  return success();
}

namespace {
struct ConvolutionCall : RuntimeCallOpInterface::ExternalModel<ConvolutionCall, exec::ConvolutionOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildConvolution(cast<exec::ConvolutionOp>(op), builder);
  }
  /// Which of the three it is, x, w and y.
  CallDescription describeCall(Operation *op) const {
    auto convolution = cast<exec::ConvolutionOp>(op);
    auto [x, w, y] = convolved(convolution);
    std::string what = stringifyConvolutionKind(convolution.getKind()).str();
    for (Value value : {x, w, y})
      what += " " + shapeText(memrefType(value).getShape());
    return {"convolution", what, memrefType(x).getElementType(),
            sumBytes({convolution.getLhs(), convolution.getRhs(), convolution.getResult()})};
  }
};
} // namespace

void dsopt::registerConvolutionCalls(MLIRContext *context) {
  exec::ConvolutionOp::attachInterface<ConvolutionCall>(*context);
}
