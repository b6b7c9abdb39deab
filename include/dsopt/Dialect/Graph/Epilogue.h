//===- Epilogue.h - graph.matmul_epilogue ----------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_EPILOGUE_H
#define DSOPT_DIALECT_GRAPH_EPILOGUE_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Epilogues.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphEpilogueOps.h.inc"

namespace dsopt::graph {
/// CostedOpInterface.
void attachEpilogueCost(mlir::MLIRContext *context);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_EPILOGUE_H
