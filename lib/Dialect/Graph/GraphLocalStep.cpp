//===- GraphLocalStep.cpp - updates by which ranks move apart -------------===//

#include "dsopt/Dialect/Graph/LocalStep.h"

using namespace mlir;
using namespace dsopt::graph;

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphLocalStepOps.cpp.inc"
