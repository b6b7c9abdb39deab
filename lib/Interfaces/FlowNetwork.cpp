//===- FlowNetwork.cpp - minimum cuts -------------------------------------===//

#include "dsopt/Interfaces/FlowNetwork.h"

#include <algorithm>

using namespace dsopt;

int FlowNetwork::addNode() {
  edgesOf.emplace_back();
  return edgesOf.size() - 1;
}

void FlowNetwork::addEdge(int from, int to, int64_t capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({from, to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({to, from, 0});
}

llvm::BitVector FlowNetwork::sinkSide(int source, int sink) {
  std::vector<int> path(edgesOf.size());
  while (true) {
    std::fill(path.begin(), path.end(), -1);
    llvm::SmallVector<int> queue{source};
    for (size_t i = 0; i < queue.size() && path[sink] < 0; ++i)
      for (int edge : edgesOf[queue[i]])
        if (edges[edge].capacity > 0 && edges[edge].to != source && path[edges[edge].to] < 0) {
          path[edges[edge].to] = edge;
          queue.push_back(edges[edge].to);
        }
    if (path[sink] < 0)
      break;
    int64_t amount = kUnlimited;
    for (int node = sink; node != source; node = edges[path[node]].from)
      amount = std::min(amount, edges[path[node]].capacity);
    for (int node = sink; node != source; node = edges[path[node]].from) {
      edges[path[node]].capacity -= amount;
      edges[path[node] ^ 1].capacity += amount;
    }
  }
  llvm::BitVector side(edgesOf.size());
  llvm::SmallVector<int> queue{sink};
  side.set(sink);
  for (size_t i = 0; i < queue.size(); ++i)
    for (int edge : edgesOf[queue[i]])
      if (edges[edge ^ 1].capacity > 0 && !side.test(edges[edge].to)) {
        side.set(edges[edge].to);
        queue.push_back(edges[edge].to);
      }
  return side;
}
