//===- RuntimeCalls.cpp - what the models of calls share; registration ----===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/Routines.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"
#include "dsopt/Runtime/ABI.h"

using namespace mlir;
using namespace dsopt;

FailureOr<int64_t> dsopt::elementTypeOf(Operation *op, Value memref) {
  Type type = memrefType(memref).getElementType();
  if (!type.isF32() && !graph::isNarrowFloat(type))
    return op->emitOpError("works on ") << type << ", expected f32, bf16 or f16";
  return int64_t(type.isBF16() ? DSOPT_BF16 : type.isF16() ? DSOPT_F16 : DSOPT_F32);
}

LogicalResult dsopt::verifyWorkspace(Operation *op, Value workspace, int64_t needed) {
  int64_t bytes = workspace ? elements(workspace) : 0;
  if (bytes < needed)
    return op->emitOpError("has a workspace of ") << bytes << " bytes, expected " << needed;
  return success();
}

std::string dsopt::shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

int64_t dsopt::sumBytes(ValueRange memrefs) {
  int64_t bytes = 0;
  for (Value memref : memrefs)
    bytes += graph::numBytes(memref.getType());
  return bytes;
}

CallDescription dsopt::describeByResult(Operation *op, Value written) {
  MemRefType result = memrefType(written);
  return {op->getName().stripDialect(), shapeText(result.getShape()), result.getElementType(),
          sumBytes(op->getOperands())};
}

void dsopt::registerRuntimeCalls(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, exec::ExecDialect *) {
    registerProductCalls(context);
    registerConvolutionCalls(context);
    registerAttentionCalls(context);
    registerLossCalls(context);
    registerScatterCalls(context);
  });
}
