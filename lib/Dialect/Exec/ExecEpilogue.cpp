//===- ExecEpilogue.cpp - products with an epilogue in segments -----------===//

#include "dsopt/Dialect/Exec/Epilogue.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

LogicalResult GemmEpilogueOp::verify() {
  for (Value value : {getGiven(), getPreActivation()})
    if (value && !cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return emitOpError("takes or keeps ") << value.getType() << ", expected a contiguous value";
  if (getPacked() && failed(verifyPackedB(*this, getPacked(), getRhs())))
    return failure();
  return verifyEpilogue(*this);
}

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecEpilogueOps.cpp.inc"
