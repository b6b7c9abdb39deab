//===- GraphOneBitLamb.cpp - 1-bit LAMB: the generated parts --------------===//

#include "dsopt/Dialect/Graph/OneBitLamb.h"

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt::graph;

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphOneBitOps.cpp.inc"
