//===- OneBitLamb.h - graph.onebit_lamb -------------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_ONEBITLAMB_H
#define DSOPT_DIALECT_GRAPH_ONEBITLAMB_H

#include "dsopt/Dialect/Graph/Graph.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphOneBitOps.h.inc"

#endif // DSOPT_DIALECT_GRAPH_ONEBITLAMB_H
