//===- ExecConvolution.cpp - convolutions in segments ---------------------===//

#include "dsopt/Dialect/Exec/Convolution.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

LogicalResult ConvolutionOp::verify() {
  for (Value value : convolved(*this))
    if (!cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return emitOpError("convolves ") << value.getType() << ", expected contiguous values";
  return verifyConvolution(*this);
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecConvolutionOps.cpp.inc"
