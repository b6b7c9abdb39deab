//===- Heads.h - heads that several others share ----------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_HEADS_H
#define DSOPT_DIALECT_GRAPH_HEADS_H

#include "dsopt/Dialect/Graph/Graph.h"

#include <optional>

namespace dsopt {

/// Heads that several others share, one after the other: what `reshape` makes of `heads` when each was
/// expanded.
struct SharedHeads {
  mlir::Value heads; ///< with a dimension of one behind that of the heads
  int64_t dim = 0;
  int64_t count = 0, readers = 0; ///< heads, and readers of each
};
std::optional<SharedHeads> headsOf(graph::ReshapeOp reshape);

} // namespace dsopt

#endif // DSOPT_DIALECT_GRAPH_HEADS_H
