//===- RematerializeElementwise.cpp - save less between F and B -----------===//
//
// A minimum cut for each block: values are nodes with their bytes as capacity,
// between what cannot be computed again and what backward reads, its products
// included. The cut nearest to backward is taken, so that nothing is computed
// again for nothing.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Interfaces/FlowNetwork.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_REMATERIALIZEELEMENTWISE
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
constexpr int64_t kUnlimited = FlowNetwork::kUnlimited;

bool isForward(Operation *op) { return graph::getPhase(op) == Phase::F; }
bool isBackward(Operation *op) { return graph::getPhase(op) == Phase::B || graph::getPhase(op) == Phase::W; }
bool isForwardOf(Operation *op, Attribute block) {
  return op && op->getAttr(graph::kBlockAttr) == block && isForward(op);
}
/// Elementwise, or a view of something elementwise.
bool isCheap(Operation *op) {
  if (isa<graph::ReshapeOp>(op))
    return true;
  auto lowerable = dyn_cast<LowerableOpInterface>(op);
  return lowerable && op->getNumResults() == 1 && lowerable.getFusionKind() == FusionKind::Pointwise;
}

/// Decides and rewrites for one block.
class BlockRematerializer {
public:
  BlockRematerializer(ArrayRef<Operation *> forward, ArrayRef<Operation *> backward)
      : forward(forward), backward(backward), block(backward.front()->getAttr(graph::kBlockAttr)) {
    readsParameters = llvm::any_of(backward, [](Operation *op) { return isa<graph::ReadOp>(op); });
  }

  void run() {
    source = network.addNode();
    sink = network.addNode();
    SmallVector<Value> needed;
    for (Operation *op : forward)
      for (Value result : op->getResults())
        if (isNeeded(result)) {
          network.addEdge(nodesOf(result).second, sink, kUnlimited);
          needed.push_back(result);
        }
    if (needed.empty())
      return;
    llvm::BitVector nearSink = network.sinkSide(source, sink);
    // A value is saved where the cut separates its two nodes.
    for (auto [value, pair] : nodes)
      if (!nearSink.test(pair.first) && nearSink.test(pair.second))
        saved.insert(Value::getFromOpaquePointer(value));
    // Before the first that reads any of it: backward begins after all of forward.
    auto reads = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        return !saved.contains(operand) && llvm::is_contained(needed, operand);
      });
    };
    auto first = llvm::find_if(backward, reads);
    if (first == backward.end())
      return;
    builder.emplace(*first);
    for (Value value : needed)
      if (!saved.contains(value)) {
        Value copy = rematerialize(value);
        value.replaceUsesWithIf(copy, [&](OpOperand &use) { return isOwnBackward(use.getOwner()); });
      }
  }

private:
  /// Operations of this block's B and W.
  bool isOwnBackward(Operation *op) { return op->getAttr(graph::kBlockAttr) == block && isBackward(op); }
  bool isNeeded(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return isOwnBackward(user); });
  }
  /// Whether the value is there in backward whatever is decided here: another block reads it then, or it
  /// is of another block and this one reads it as it is.
  bool isKeptAnyway(Value value) {
    bool isOwn = isForwardOf(value.getDefiningOp(), block);
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return isBackward(user) && !(isOwn && isOwnBackward(user)); });
  }

  /// A value's two nodes; made with all that lead to it. A chain may be longer than a stack is deep.
  std::pair<int, int> nodesOf(Value value) {
    SmallVector<Value> made;
    auto get = [&](Value value) {
      auto [it, isNew] = nodes.try_emplace(value.getAsOpaquePointer());
      if (isNew) {
        it->second = {network.addNode(), network.addNode()};
        made.push_back(value);
      }
      return it->second;
    };
    std::pair<int, int> pair = get(value);
    while (!made.empty())
      connect(made.pop_back_val(), get);
    return pair;
  }

  void connect(Value value, llvm::function_ref<std::pair<int, int>(Value)> get) {
    std::pair<int, int> pair = get(value);
    Operation *op = value.getDefiningOp();
    bool isFree = op && op->hasTrait<OpTrait::ConstantLike>();
    if (isa_and_nonnull<graph::ReadOp>(op))
      isFree = readsParameters;
    int64_t bytes = isFree || isKeptAnyway(value)        ? 0
                    : isa_and_nonnull<graph::ReadOp>(op) ? kUnlimited
                                                         : graph::numBytes(value.getType());
    network.addEdge(pair.first, pair.second, bytes);
    if (!isForwardOf(op, block) || !isCheap(op)) {
      network.addEdge(source, pair.first, kUnlimited);
      return;
    }
    for (Value operand : op->getOperands())
      network.addEdge(get(operand).second, pair.first, kUnlimited);
  }

  /// What backward reads in place of a value; null where its copy is still to be made.
  Value found(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->hasTrait<OpTrait::ConstantLike>() || (saved.contains(value) && !isa<graph::ReadOp>(op)))
      return value;
    auto it = copies.find(value.getAsOpaquePointer());
    return it == copies.end() ? Value() : it->second;
  }

  Value rematerialize(Value value) {
    SmallVector<std::pair<Value, unsigned>>
        path; ///< to what is copied, each with its operands that are there
    if (!found(value))
      path.push_back({value, 0});
    while (!path.empty()) {
      auto &[last, ready] = path.back();
      Operation *op = last.getDefiningOp();
      if (ready < op->getNumOperands()) {
        if (Value operand = op->getOperand(ready++); !found(operand))
          path.push_back({operand, 0});
        continue;
      }
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, found(operand));
      Operation *clone = builder->clone(*op, mapping);
      clone->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(op->getContext(), Phase::B));
      copies[last.getAsOpaquePointer()] = clone->getResult(0);
      path.pop_back();
    }
    return found(value);
  }

  ArrayRef<Operation *> forward, backward;
  Attribute block;
  bool readsParameters;
  FlowNetwork network;
  int source = 0, sink = 0;
  std::map<const void *, std::pair<int, int>> nodes;
  llvm::DenseSet<Value> saved;
  std::map<const void *, Value> copies;
  std::optional<OpBuilder> builder;
};

struct RematerializeElementwise : impl::RematerializeElementwiseBase<RematerializeElementwise> {
  void runOnOperation() override {
    auto microBatch = getOperation().lookupSymbol<func::FuncOp>(graph::kMicroBatchFunction);
    if (!microBatch || microBatch.isExternal())
      return;
    llvm::MapVector<Attribute, std::pair<SmallVector<Operation *>, SmallVector<Operation *>>> blocks;
    for (Operation &op : microBatch.front()) {
      Attribute block = op.getAttr(graph::kBlockAttr);
      if (block && isForward(&op))
        blocks[block].first.push_back(&op);
      else if (block && isBackward(&op))
        blocks[block].second.push_back(&op);
    }
    for (auto &[block, ops] : blocks)
      if (!ops.second.empty())
        BlockRematerializer(ops.first, ops.second).run();
  }
};
} // namespace
} // namespace dsopt
