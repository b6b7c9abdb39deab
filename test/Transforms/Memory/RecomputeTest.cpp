//===- RecomputeTest.cpp - what runs again, against all that could --------===//
//
// Blocks so small that every set of their operations can be tried.
//
//===----------------------------------------------------------------------===//

#include "BlockRecomputer.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Transforms/Memory/RecomputeScale.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dsopt;
using namespace mlir;

namespace {
/// Three products; values of different sizes, dear and cheap ones, read once and twice.
constexpr const char *kModel = R"mlir(
module attributes {dsopt.options = {dp = 1 : i64, zero = 0 : i64, micro_batches = 2 : i64, optimizer = "sgd"}} {
  graph.parameter @w1 : tensor<32x128xf32> from "m" at 0 bytes 16384
  graph.parameter @w2 : tensor<128x64xf32> from "m" at 16384 bytes 32768
  graph.parameter @w3 : tensor<64x16xf32> from "m" at 49152 bytes 4096
  func.func @forward(%x: tensor<64x32xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %w1 = graph.read @w1 : tensor<32x128xf32>
    %a = graph.matmul %x, %w1 : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %b = graph.tanh %a : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %c = graph.softmax %b {axis = 1 : i64} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %d = graph.mul %c, %b : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %w2 = graph.read @w2 : tensor<128x64xf32>
    %e = graph.matmul %d, %w2 : (tensor<64x128xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    %f = graph.softmax %e {axis = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %g = graph.exp %f : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %w3 = graph.read @w3 : tensor<64x16xf32>
    %h = graph.matmul %g, %w3 : (tensor<64x64xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %i = graph.mul %h, %h : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %loss = graph.reduce_sum %i {axes = array<i64: 0, 1>} : (tensor<64x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)mlir";

class Recompute : public testing::Test {
protected:
  Recompute() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    static const bool registered = (registerAllPasses(), true);
    EXPECT_TRUE(registered);
    module = parseSourceString<ModuleOp>(kModel, &context);
    PassManager passes(&context);
    EXPECT_TRUE(module &&
                succeeded(parsePassPipeline(
                    "attach-target{arch=x86-64-v3},find-blocks,build-backward,append-optimizer,"
                    "decompose-composites,form-kernels,form-blocks,declare-grid,split-stages,partition-zero,"
                    "place-collectives",
                    passes)));
    EXPECT_TRUE(succeeded(passes.run(*module)));
  }
  SmallVector<BlockRuns> runsOf(ModuleOp of) {
    SymbolTable symbols(of);
    return collectRuns(symbols.lookup<func::FuncOp>("micro_batch"), symbols);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// A block's forward with what each set of its operations keeps and costs.
struct Forward {
  Forward(ModuleOp module, const BlockRuns &block, BlockRecomputer &recomputer) : block(block) {
    function =
        SymbolTable(module).lookup<func::FuncOp>(graph::RunOp(block.forward).getCalleeAttr().getAttr());
    for (Operation &op : function.front().without_terminator()) {
      ops.push_back(&op);
      costs.push_back(*recomputer.costOf(&op));
    }
  }
  bool isOwn(Operation *user) const { return user == block.backward || user == block.weights; }
  /// Whether backward has the value anyway: it reads it already, or that of another block does.
  bool isFree(Value outside, bool byOwn) const {
    return llvm::any_of(outside.getUsers(), [&](Operation *user) {
      auto run = dyn_cast<graph::RunOp>(user);
      if (!run || run == block.forward)
        return false;
      if (isOwn(run))
        return byOwn;
      StringRef callee = run.getCallee();
      return callee.ends_with(".B") || callee.ends_with(".W");
    });
  }
  /// Bytes that stay between forward and backward when these operations run again; infinite where one may
  /// not.
  double kept(uint32_t again) const {
    llvm::DenseSet<Value> needed;
    for (auto [place, op] : llvm::enumerate(ops))
      if (again >> place & 1) {
        if (!isPure(op) && !isa<graph::ReadOp>(op))
          return INFINITY;
        needed.insert(op->operand_begin(), op->operand_end());
      }
    graph::RunOp run = block.forward;
    llvm::DenseMap<Value, Value> results;
    for (auto [returned, result] :
         llvm::zip(func::FuncOp(function).front().getTerminator()->getOperands(), run.getOutputs())) {
      results[returned] = result;
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return isOwn(user); }))
        needed.insert(returned);
    }
    double bytes = 0;
    for (Value value : needed) {
      Operation *maker = value.getDefiningOp();
      if (!maker) {
        Value input = run.getInputs()[cast<BlockArgument>(value).getArgNumber()];
        bytes += isFree(input, /*byOwn=*/true) ? 0 : graph::numBytes(value.getType());
        continue;
      }
      auto place = llvm::find(ops, maker) - ops.begin();
      bool isThere = isa<graph::ReadOp>(maker) || maker->hasTrait<OpTrait::ConstantLike>();
      if (isThere || again >> place & 1)
        continue;
      Value result = results.lookup(value);
      bytes += result && isFree(result, /*byOwn=*/false) ? 0 : graph::numBytes(value.getType());
    }
    return bytes;
  }
  double cost(uint32_t again) const {
    double sum = 0;
    for (auto [place, one] : llvm::enumerate(costs))
      sum += again >> place & 1 ? one : 0;
    return sum;
  }

  BlockRuns block;
  func::FuncOp function;
  SmallVector<Operation *> ops;
  SmallVector<int64_t> costs;
};

uint32_t setOf(const BlockRecomputer::Choice &choice) {
  uint32_t set = 0;
  for (int64_t place : choice.again)
    set |= 1u << place;
  return set;
}
} // namespace

/// The cut of a block is the best of all sets, at every price.
TEST_F(Recompute, ACutIsTheBestOfAllSets) {
  BlockRecomputer recomputer(*module);
  SmallVector<BlockRuns> blocks = runsOf(*module);
  ASSERT_EQ(blocks.size(), 3u);
  int64_t changed = 0;
  for (const BlockRuns &block : blocks) {
    Forward forward(*module, block, recomputer);
    ASSERT_LE(forward.ops.size(), 12u);
    for (int exponent = 2; exponent >= -30; --exponent) {
      double rate = std::ldexp(1.0, exponent);
      auto choice = recomputer.choose(block, rate);
      ASSERT_TRUE(succeeded(choice));
      uint32_t chosen = setOf(*choice);
      EXPECT_EQ(choice->kept, forward.kept(chosen));
      EXPECT_EQ(choice->cost, forward.cost(chosen));
      double best = INFINITY;
      for (uint32_t set = 0; set < 1u << forward.ops.size(); ++set)
        best = std::min(best, forward.kept(set) + rate * forward.cost(set));
      // Capacities are counted in parts of a byte, each rounded down.
      EXPECT_LE(choice->kept + rate * choice->cost, best + forward.ops.size() / 256.0)
          << "block " << block.number << " at 2^" << exponent;
      changed += chosen != 0;
    }
  }
  EXPECT_GT(changed, 20);
}

/// What a budget costs beside the least that any sets of all blocks would: places on one scale are fewer.
TEST_F(Recompute, ABudgetCostsLittleMoreThanTheLeast) {
  auto scale = RecomputeScale::create(*module);
  ASSERT_TRUE(succeeded(scale));
  struct Point {
    int64_t bytes;
    double flops;
  };
  std::vector<Point> all;
  BlockRecomputer recomputer(*module);
  SmallVector<BlockRuns> blocks = runsOf(*module);
  // Sets that keep more bytes than a cheaper one of their block are no answer to any budget.
  std::vector<std::vector<uint32_t>> sets;
  for (const BlockRuns &block : blocks) {
    Forward forward(*module, block, recomputer);
    std::vector<uint32_t> &useful = sets.emplace_back();
    for (uint32_t set = 0; set < 1u << forward.ops.size(); ++set) {
      bool isBeaten = std::isinf(forward.kept(set));
      for (uint32_t other = 0; other < 1u << forward.ops.size() && !isBeaten; ++other)
        isBeaten = other != set && forward.kept(other) <= forward.kept(set) &&
                   forward.cost(other) < forward.cost(set);
      if (!isBeaten)
        useful.push_back(set);
    }
  }
  std::vector<uint32_t> chosen(blocks.size());
  std::function<void(size_t)> tryAll = [&](size_t index) {
    if (index < blocks.size()) {
      for (uint32_t set : sets[index]) {
        chosen[index] = set;
        tryAll(index + 1);
      }
      return;
    }
    OwningOpRef<ModuleOp> copy = module->clone();
    BlockRecomputer rewriter(*copy);
    SmallVector<BlockRuns> runs = runsOf(*copy);
    for (size_t at = runs.size(); at-- > 0;) {
      BlockRecomputer::Choice choice;
      for (int64_t place = 0; place < 32; ++place)
        if (chosen[at] >> place & 1)
          choice.again.push_back(place);
      ASSERT_TRUE(succeeded(rewriter.apply(runs[at], choice)));
    }
    auto planner = Planner::create(*copy);
    ASSERT_TRUE(succeeded(planner));
    auto plan = planner->plan({2, 1, 0});
    ASSERT_TRUE(succeeded(plan));
    all.push_back({plan->bytes, plan->cost.flops});
  };
  tryAll(0);
  ASSERT_GT(all.size(), 8u);
  double none = INFINITY, worst = 0;
  for (const Point &point : all)
    none = std::min(none, point.flops);
  int64_t budgets = 0;
  auto least = scale->search().plan(*module, *scale->search().fewest(*module, 0), 0);
  ASSERT_TRUE(succeeded(least));
  for (const Point &budget : all) {
    if (budget.bytes < least->bytes)
      continue;
    double exact = INFINITY;
    for (const Point &point : all)
      if (point.bytes <= budget.bytes)
        exact = std::min(exact, point.flops);
    auto plan = scale->search().plan(*module, *scale->search().fewest(*module, budget.bytes), 0);
    ASSERT_TRUE(succeeded(plan));
    EXPECT_LE(plan->bytes, budget.bytes);
    worst = std::max(worst, plan->cost.flops / exact - 1);
    ++budgets;
  }
  std::printf("%zu plans of all sets, %lld budgets: at most %.1f %% more flops than the least; the smallest "
              "budget is "
              "%.3f of the smallest of all\n",
              all.size(), static_cast<long long>(budgets), worst * 100,
              double(least->bytes) /
                  std::min_element(all.begin(), all.end(), [](const Point &a, const Point &b) {
                    return a.bytes < b.bytes;
                  })->bytes);
  EXPECT_LT(worst, 0.15);
}

/// Of a long step few micro-batches are asked about: what is found fits, and a budget that leaves the
/// estimate room finds the exact answer.
TEST_F(Recompute, ALongStepIsSearchedByFewMicroBatches) {
  constexpr int64_t kMany = 1024;
  Builder builder(&context);
  setOption(*module, "micro_batches", builder.getI64IntegerAttr(kMany));
  auto scale = RecomputeScale::create(*module);
  ASSERT_TRUE(succeeded(scale));
  auto planAt = [&](int64_t place) { return scale->search().plan(*module, {place}, 0); };
  int64_t distinct = 0;
  for (int64_t place = 0, lastBytes = INT64_MAX; place <= scale->last(0); ++place) {
    auto plan = planAt(place);
    ASSERT_TRUE(succeeded(plan));
    if (plan->bytes >= lastBytes)
      continue;
    lastBytes = plan->bytes;
    ++distinct;
    auto tight = scale->search().fewest(*module, plan->bytes);
    EXPECT_LE(planAt((*tight)[0])->bytes, plan->bytes);
    auto roomy = scale->search().fewest(*module, plan->bytes * 100 / 98 + 100);
    EXPECT_LE(planAt((*roomy)[0])->cost.flops, plan->cost.flops);
  }
  EXPECT_GE(distinct, 2);
}
