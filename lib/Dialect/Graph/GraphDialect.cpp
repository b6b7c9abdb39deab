//===- GraphDialect.cpp - the graph dialect: registration -----------------===//

#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt::graph;

#include "dsopt/Dialect/Graph/GraphDialect.cpp.inc"

void GraphDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Graph/GraphOps.cpp.inc"
      >();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements ? ConstantOp::create(builder, loc, elements) : nullptr;
}
