//===- GraphOps.td - every operation of the graph dialect -------*- tablegen -*-===//
#ifndef DSOPT_DIALECT_GRAPH_GRAPHOPS
#define DSOPT_DIALECT_GRAPH_GRAPHOPS

include "dsopt/Dialect/Graph/GraphMathOps.td"
include "dsopt/Dialect/Graph/GraphNNOps.td"
include "dsopt/Dialect/Graph/GraphWindowOps.td"
include "dsopt/Dialect/Graph/GraphRoutineOps.td"
include "dsopt/Dialect/Graph/GraphStateOps.td"
include "dsopt/Dialect/Graph/GraphCacheOps.td"
include "dsopt/Dialect/Graph/GraphGradientOps.td"

#endif // DSOPT_DIALECT_GRAPH_GRAPHOPS
