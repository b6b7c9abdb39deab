//===- GraphOps.cpp - the generated parts of the operations ---------------===//

#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt::graph;

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphOps.cpp.inc"
