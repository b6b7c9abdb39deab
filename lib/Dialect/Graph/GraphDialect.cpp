//===- GraphDialect.cpp - the graph dialect: registration -----------------===//

#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/Convolution.h"
#include "dsopt/Dialect/Graph/Epilogue.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/OneBitLamb.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt::graph;

#include "dsopt/Dialect/Graph/GraphDialect.cpp.inc"
#include "dsopt/Dialect/Graph/GraphEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Graph/GraphAttrs.cpp.inc"

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dsopt/Dialect/Graph/GraphAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphBranchOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphConvolutionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphEpilogueOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphLocalStepOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphOneBitOps.cpp.inc"
      >();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements ? ConstantOp::create(builder, loc, elements) : nullptr;
}
