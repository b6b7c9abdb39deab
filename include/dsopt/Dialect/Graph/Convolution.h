//===- Convolution.h - graph.convolution ----------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_CONVOLUTION_H
#define DSOPT_DIALECT_GRAPH_CONVOLUTION_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Convolutions.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphConvolutionOps.h.inc"

namespace dsopt::graph {
/// CostedOpInterface.
void attachConvolutionCost(mlir::MLIRContext *context);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_CONVOLUTION_H
