//===- FlowNetwork.h - minimum cuts -----------------------------*- C++ -*-===//
//
// For passes that decide what to keep and what to compute again. Maximum flow by
// shortest augmenting paths (Edmonds and Karp, 1972), for networks as small as a block
// of a model.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_FLOWNETWORK_H
#define DSOPT_INTERFACES_FLOWNETWORK_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace dsopt {

class FlowNetwork {
public:
  /// Of an edge that no cut takes.
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

  int addNode();
  void addEdge(int from, int to, int64_t capacity);
  /// The nodes that the sink can be reached from when the flow is largest: of the smallest cuts the one
  /// nearest to the sink.
  llvm::BitVector sinkSide(int source, int sink);

private:
  struct Edge {
    int from, to;
    int64_t capacity;
  };
  std::vector<Edge> edges;
  std::vector<llvm::SmallVector<int>> edgesOf;
};

} // namespace dsopt

#endif // DSOPT_INTERFACES_FLOWNETWORK_H
