//===- FindBlocks.cpp - cut the forward graph into blocks -----------------===//

#include "Idioms.h"
#include "Origins.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_FINDBLOCKS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {

/// What is alive behind an operation.
struct Live {
  int64_t bytes = 0, values = 0;
};

/// A place where a cut may be: behind the operation with this index.
struct Candidate {
  size_t place;
  Live live;
};

/// The operations that are numbered: they multiply by a parameter, or by what is made of parameters alone
/// (an exporter's reordered gates of a recurrence).
std::vector<size_t> findProducts(ArrayRef<Operation *> ops, const Origins &origins) {
  llvm::DenseSet<Value> made;
  auto isWeight = [&](Value value) { return origins.of(value) == Origin::Parameter || made.contains(value); };
  std::vector<size_t> products;
  for (auto [index, op] : llvm::enumerate(ops)) {
    if (isa<ProductOpInterface>(op) && llvm::any_of(op->getOperands(), isWeight))
      products.push_back(index);
    auto isFixed = [&](Value value) {
      return isWeight(value) ||
             (value.getDefiningOp() && value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>());
    };
    if (llvm::any_of(op->getOperands(), isWeight) && llvm::all_of(op->getOperands(), isFixed))
      made.insert(op->result_begin(), op->result_end());
  }
  return products;
}

struct FindBlocks : public dsopt::impl::FindBlocksBase<FindBlocks> {
  using FindBlocksBase::FindBlocksBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      getOperation().emitError("find-blocks expects a function @forward with one body");
      return signalPassFailure();
    }
    removeUnused(forward);
    Origins origins(forward);
    std::vector<Operation *> ops;
    for (Operation &op : forward.front().without_terminator())
      ops.push_back(&op);
    measuring = graph::measuringOnly(forward);
    std::vector<size_t> cuts = findCuts(ops, forward.front().getTerminator(), origins);
    assign(forward, ops, cuts, origins);
    getOperation()->setAttr(graph::kBlocksAttr, Builder(&getContext()).getI64IntegerAttr(cuts.size() + 1));
  }

  void removeUnused(func::FuncOp forward) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.front())))
      if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() &&
          (isMemoryEffectFree(&op) || isa<graph::ReadOp>(op)))
        op.erase();
  }

  /// Live activations behind each operation.
  std::vector<Live> findLive(ArrayRef<Operation *> ops, Operation *terminator, const Origins &origins) {
    DenseMap<Value, size_t> lastUse;
    auto use = [&](ValueRange operands, size_t index) {
      for (Value operand : operands)
        if (origins.of(operand) == Origin::Activation)
          lastUse[idioms::withoutReshapes(operand)] = index;
    };
    // Statistics stay where they are made, and what is made for them alone counts nothing.
    llvm::DenseSet<Operation *> counted{terminator->getOperand(0).getDefiningOp()};
    if (graph::predicts(cast<func::FuncOp>(terminator->getParentOp())))
      for (Value output : terminator->getOperands())
        counted.insert(output.getDefiningOp());
    for (Operation *op : llvm::reverse(ops))
      if (counted.contains(op))
        for (Value operand : op->getOperands())
          counted.insert(operand.getDefiningOp());
    for (auto [index, op] : llvm::enumerate(ops))
      if (!isa<graph::ReshapeOp>(op) && counted.contains(op))
        use(op->getOperands(), index);
    use(terminator->getOperands().take_front(), ops.size());
    std::vector<Live> live(ops.size() + 1);
    for (auto [index, op] : llvm::enumerate(ops))
      for (Value result : op->getResults()) {
        auto last = lastUse.find(result);
        if (last == lastUse.end())
          continue;
        int64_t bytes = graph::numBytes(result.getType());
        live[index].bytes += bytes;
        live[index].values += 1;
        live[last->second].bytes -= bytes;
        live[last->second].values -= 1;
      }
    for (size_t i = 1; i < live.size(); ++i) {
      live[i].bytes += live[i - 1].bytes;
      live[i].values += live[i - 1].values;
    }
    return live;
  }

  /// The cuts, each behind the operation with that index, ascending.
  std::vector<size_t> findCuts(ArrayRef<Operation *> ops, Operation *terminator, const Origins &origins) {
    std::vector<Live> live = findLive(ops, terminator, origins);
    std::vector<size_t> products = findProducts(ops, origins);
    // What is measured cuts no blocks.
    llvm::erase_if(products, [&](size_t index) { return measuring.contains(ops[index]); });
    std::vector<Candidate> candidates;
    for (size_t i = 0; i + 1 < products.size(); ++i) {
      size_t best = products[i];
      for (size_t place = best; place < products[i + 1]; ++place)
        if (live[place].bytes <= live[best].bytes)
          best = place;
      candidates.push_back({best, live[best]});
    }
    std::vector<size_t> cuts;
    for (size_t begin = 0, end; begin < candidates.size(); begin = end) {
      int64_t values = candidates[begin].live.values;
      for (end = begin; end < candidates.size() && candidates[end].live.values == values;)
        ++end;
      bool moreBefore = begin == 0 || candidates[begin - 1].live.values > values;
      bool moreAfter = end == candidates.size() || candidates[end].live.values > values;
      if (moreBefore && moreAfter)
        for (size_t i = begin; i < end; ++i)
          cuts.push_back(candidates[i].place);
    }
    return cuts;
  }

  /// A statistic of what is made from inputs alone is made in its normalization's block, where the running
  /// one is read.
  void placeStatistics(func::FuncOp forward) {
    llvm::DenseMap<Attribute, Attribute> homes;
    for (auto read : forward.getOps<graph::ReadOp>())
      homes.try_emplace(read.getStateAttr(), read->getAttr(graph::kBlockAttr));
    for (const graph::Statistic &statistic : graph::statisticsOf(forward)) {
      SmallVector<Value> open{forward.front().getTerminator()->getOperand(statistic.result)};
      Attribute home = homes.lookup(statistic.parameter);
      while (home && !open.empty()) {
        Operation *op = open.pop_back_val().getDefiningOp();
        if (!op || op->hasAttr(graph::kBlockAttr))
          continue;
        op->setAttr(graph::kBlockAttr, home);
        llvm::append_range(open, op->getOperands());
      }
    }
  }

  /// Numbers the operations and clones floating ones into each block.
  void assign(func::FuncOp forward, ArrayRef<Operation *> ops, ArrayRef<size_t> cuts,
              const Origins &origins) {
    Rematerializer rematerializer([&](Operation *op) { return origins.floats(op); });
    size_t block = 0;
    for (auto [index, op] : llvm::enumerate(ops)) {
      if (block < cuts.size() && index > cuts[block])
        ++block;
      if (origins.floats(op))
        continue;
      auto number = Builder(&getContext()).getI64IntegerAttr(block);
      auto tag = [&](Operation *tagged) { tagged->setAttr(graph::kBlockAttr, number); };
      tag(op);
      rematerializer.localize(op, block, /*readPerUse=*/true, tag);
    }
    // What is left of the originals: the loss itself, if it is made from inputs, and statistics of inputs.
    for (Operation *op : llvm::reverse(ops))
      if (origins.floats(op) && op->use_empty())
        op->erase();
    placeStatistics(forward);
    for (Operation &op : forward.front().without_terminator())
      if (!op.hasAttr(graph::kBlockAttr))
        op.setAttr(graph::kBlockAttr, Builder(&getContext()).getI64IntegerAttr(block));
  }

  llvm::DenseSet<Operation *> measuring; ///< operations that only metrics need
};

} // namespace
