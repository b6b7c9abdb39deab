//===- Plan.cpp - what a program will take and send -----------------------===//

#include "dsopt/Pipeline/Plan.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Simulation.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
constexpr StringLiteral kMemoryClasses[] = {"parameters", "gradients", "optimizer", "activations", "buffers",
                                            "reduction",  "tied",      "padding",   "total"};
constexpr StringLiteral kTrafficClasses[] = {"all_gather", "reduce_scatter", "all_reduce", "send_recv",
                                             "all_to_all", "tied",           "padding"};

/// Everything the two forms print.
struct Plan {
  explicit Plan(ModuleOp module);

  ModuleOp module;
  SmallVector<ProgramOp> programs;
  int64_t dp, M, V, threads, parameters = 0;
  std::string zero, accumulate, schedule;
  double bubble = 0, flops = 0, milliseconds = 0;
};
} // namespace

static int64_t entryOf(Operation *op, StringRef dictionary, StringRef name) {
  auto entries = op->getAttrOfType<DictionaryAttr>(dictionary);
  auto value = entries ? entries.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : 0;
}

Plan::Plan(ModuleOp module)
    : module(module), programs(getStepPrograms(module)), dp(getOption(module, "dp", 1)),
      M(getOption(module, "micro_batches", 1)), V(getOption(module, "reduction_shards", dp)),
      threads(std::max<int64_t>(getOption(module, "threads", 1), 1)) {
  int64_t stage = getOption(module, "zero", 0);
  zero = std::to_string(dp == 1 ? 0 : stage);
  accumulate = getOption(module, "accumulate", StringRef(stage < 2 ? "local" : "sharded"));
  schedule = getOption(module, "schedule", StringRef("1f1b"));
  for (auto parameter : module.getOps<graph::ParameterOp>())
    parameters += graph::numElements(parameter.getType());

  llvm::DenseMap<StringAttr, double> costs;
  for (auto segment : module.getOps<func::FuncOp>())
    if (auto cost = segment->getAttrOfType<IntegerAttr>(kFlopsAttr))
      costs[segment.getSymNameAttr()] = cost.getInt();
  Simulation simulation(programs, [&](Operation *op) {
    auto run = dyn_cast<RunOp>(op);
    return run ? costs.lookup(run.getSegmentAttr().getAttr()) : 0.0;
  });
  double busy = 0;
  for (size_t position = 0; position < programs.size(); ++position)
    busy += simulation.busy(position);
  flops = busy * dp;
  if (simulation.end() > 0)
    bubble = 1 - busy / (simulation.end() * programs.size());
  milliseconds = simulation.end() / (kAssumedFlopsPerThread * threads) * 1e3;
}

static void printJson(const Plan &plan, llvm::raw_ostream &out) {
  llvm::json::OStream json(out);
  json.object([&] {
    json.attributeObject("layout", [&] {
      json.attribute("pp", (int64_t)plan.programs.size());
      json.attribute("dp", plan.dp);
      json.attribute("sp", 1);
      json.attribute("tp", 1);
      json.attribute("ep", 1);
      json.attribute("zero", std::stoi(plan.zero));
      json.attribute("schedule", plan.schedule);
      json.attribute("accumulate", plan.accumulate);
      json.attribute("threads", plan.threads);
    });
    json.attributeObject("batch", [&] {
      json.attribute("K", plan.dp * plan.M);
      json.attribute("V", plan.V);
      json.attribute("M", plan.M);
      json.attribute("micro_batch_size", getOption(plan.module, "micro_batch_size", 0));
    });
    json.attribute("parameters", plan.parameters);
    json.attributeArray("ranks", [&] {
      for (auto [stage, op] : llvm::enumerate(plan.programs)) {
        ProgramOp program = op;
        for (int64_t d = 0; d < plan.dp; ++d)
          json.object([&, stage = stage] {
            json.attribute("rank", (int64_t)stage * plan.dp + d);
            json.attribute("stage", (int64_t)stage);
            json.attributeArray("blocks", [&] {
              json.array([&] {
                for (int64_t bound : program.getBlocks())
                  json.value(bound);
              });
            });
            json.attributeObject("memory", [&] {
              for (StringRef name : kMemoryClasses)
                json.attribute(name, entryOf(program, kMemoryAttr, name));
            });
            json.attribute("live_bytes", (int64_t)program.getBound().value_or(0));
            json.attributeObject("traffic", [&] {
              for (StringRef name : kTrafficClasses)
                json.attribute(name, entryOf(program, kTrafficAttr, name));
            });
          });
      }
    });
    json.attribute("bubble", plan.bubble);
    json.attribute("flops_per_step", (int64_t)plan.flops);
    json.attribute("predicted_step_ms", plan.milliseconds);
    json.attribute("assumed_gflops_per_thread", kAssumedFlopsPerThread / 1e9);
  });
  out << "\n";
}

/// 123, 1.5 k, 20.1 M ... (powers of 1024), for a table.
static std::string humanBytes(int64_t bytes) {
  const char *units[] = {"", " k", " M", " G", " T"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return llvm::formatv(unit ? "{0:F1}{1}" : "{0:F0}{1}", value, units[unit]).str();
}

static void printTable(const Plan &plan, llvm::raw_ostream &out) {
  out << llvm::formatv("layout      {0} stages x {1} data-parallel ranks, zero {2}, {3}\n",
                       plan.programs.size(), plan.dp, plan.zero, plan.schedule);
  out << llvm::formatv("batch       {0} micro-batches a step = {1} dp x {2}, {3} reduction shards, {4}\n",
                       plan.dp * plan.M, plan.dp, plan.M, plan.V, plan.accumulate);
  out << llvm::formatv("parameters  {0}\n\n", plan.parameters);
  auto cell = [&](StringRef text, size_t width) { out << llvm::right_justify(text, width); };
  auto header = [&](StringRef title, ArrayRef<StringLiteral> classes) {
    cell("ranks", 12);
    cell("blocks", 10);
    for (StringRef name : classes)
      cell(name, 16);
    out << "   " << title << "\n";
  };
  auto rows = [&](StringRef dictionary, ArrayRef<StringLiteral> classes) {
    for (auto [stage, op] : llvm::enumerate(plan.programs)) {
      ProgramOp program = op;
      int64_t first = stage * plan.dp;
      std::string ranks = std::to_string(first);
      if (plan.dp > 1)
        ranks += ".." + std::to_string(first + plan.dp - 1);
      cell(ranks, 12);
      cell(llvm::formatv("{0}..{1}", program.getBlocks()[0], program.getBlocks()[1] - 1).str(), 10);
      for (StringRef name : classes)
        cell(humanBytes(entryOf(program, dictionary, name)), 16);
      out << "\n";
    }
    out << "\n";
  };
  header("bytes of a rank at the peak", kMemoryClasses);
  rows(kMemoryAttr, kMemoryClasses);
  // The position whose arena is furthest above what no packing can beat.
  double most = 0;
  int64_t live = 0;
  for (ProgramOp program : plan.programs)
    if (int64_t bound = program.getBound().value_or(0); bound > 0) {
      double above = double(entryOf(program, kMemoryAttr, "total")) / bound - 1;
      if (above >= most)
        most = above, live = bound;
    }
  out << llvm::formatv("packing     at most {0:F1} % above the largest sum of live bytes ({1})\n\n",
                       most * 100, humanBytes(live));
  header("bytes a rank sends in a step", kTrafficClasses);
  rows(kTrafficAttr, kTrafficClasses);
  out << llvm::formatv("bubble      {0:F3}\nflops       {1:e2} a step\npredicted   {2:F1} ms a step at "
                       "{3:F0} GFLOP/s a thread\n",
                       plan.bubble, plan.flops, plan.milliseconds, kAssumedFlopsPerThread / 1e9);
}

void dsopt::printPlan(ModuleOp module, llvm::raw_ostream &out, bool json) {
  Plan plan(module);
  json ? printJson(plan, out) : printTable(plan, out);
}
