//===- Heads.cpp - heads that several others share -------------------------===//

#include "dsopt/Dialect/Graph/Heads.h"

using namespace mlir;
using namespace dsopt;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

std::optional<SharedHeads> dsopt::headsOf(graph::ReshapeOp reshape) {
  auto expand = reshape.getInput().getDefiningOp<graph::ExpandOp>();
  if (!expand)
    return std::nullopt;
  ArrayRef<int64_t> from = shapeOf(expand.getInput()), to = shapeOf(expand), merged = shapeOf(reshape);
  if (from.size() != to.size() || merged.size() + 1 != to.size())
    return std::nullopt;
  // One dimension alone is broadcast.
  auto [left, right] = std::mismatch(from.begin(), from.end(), to.begin());
  int64_t dim = left - from.begin() - 1;
  if (dim < 0 || left == from.end() || from.drop_front(dim + 2) != to.drop_front(dim + 2) ||
      merged.take_front(dim) != to.take_front(dim) || merged[dim] != to[dim] * to[dim + 1] ||
      merged.drop_front(dim + 1) != to.drop_front(dim + 2))
    return std::nullopt;
  return SharedHeads{expand.getInput(), dim, to[dim], to[dim + 1]};
}
