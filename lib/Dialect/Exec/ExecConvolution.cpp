//===- ExecConvolution.cpp - convolutions in segments ---------------------===//

#include "dsopt/Dialect/Exec/Convolution.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

LogicalResult ConvolutionOp::verify() {
  auto [x, w, y] = convolved(*this);
  Type type = getElementTypeOrSelf(x.getType());
  for (Value other : {w, y})
    if (getElementTypeOrSelf(other.getType()) != type)
      return emitOpError("has values of types ")
             << x.getType() << " and " << other.getType() << ", expected one element type";
  for (Value value : {x, w, y})
    if (!cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return emitOpError("convolves ") << value.getType() << ", expected contiguous values";
  if (const char *expected = checkConvolution(shapeOfConvolution(*this)))
    return emitOpError("convolves ") << x.getType() << " with " << w.getType() << " to " << y.getType()
                                     << " (strides [" << getStrides() << "], dilations [" << getDilations()
                                     << "], pads [" << getPads() << "], " << getGroups()
                                     << " groups), expected " << expected;
  return success();
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecConvolutionOps.cpp.inc"
