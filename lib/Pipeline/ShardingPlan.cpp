//===- ShardingPlan.cpp - what tensor shards cut, and what they send ------===//

#include "ShardingPlan.h"

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Analysis/Exec/Traffic.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/AssumedRates.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Pipeline/Plan.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;

/// The dimension that the shards of a parameter are cut in; none where it has none.
static std::optional<int64_t> cutOf(graph::ParameterOp whole, graph::ParameterOp part) {
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(cast<ShapedType>(whole.getType()).getShape(),
                                                           cast<ShapedType>(part.getType()).getShape())))
    if (std::get<0>(sizes) != std::get<1>(sizes))
      return dim;
  return std::nullopt;
}

static std::vector<ShardingPlan::Parameter> placedParameters(ModuleOp module) {
  llvm::DenseMap<StringAttr, graph::ParameterOp> firsts; ///< by the whole's name
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (parameter.getPartRuns())
      firsts.try_emplace(parameter.getPartOfAttr().getAttr(), parameter);
  std::vector<ShardingPlan::Parameter> placed;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    if (parameter.getPartOf())
      continue;
    ShardingPlan::Parameter one{
        parameter, {}, std::nullopt, std::nullopt, parameter.getUncut().value_or("").str()};
    one.shape.assign(cast<ShapedType>(parameter.getType()).getShape());
    if (graph::ParameterOp first = firsts.lookup(parameter.getSymNameAttr()))
      one.dim = one.seenDim = cutOf(parameter, first);
    if (parameter.getTransposed()) {
      std::swap(one.shape[0], one.shape[1]);
      if (one.dim)
        one.seenDim = 1 - *one.dim;
    }
    placed.push_back(std::move(one));
  }
  return placed;
}

/// Sums follow the run that makes their pieces.
static std::vector<ShardingPlan::Sums> sumsOf(ModuleOp module) {
  SmallVector<exec::ProgramOp> programs = exec::getStepPrograms(module);
  bool computesAgain = options::recompute(module) != "none";
  SymbolTable symbols(module);
  std::map<std::pair<int64_t, Phase>, ShardingPlan::Sums> found;
  for (auto [program, traffic] : llvm::zip_equal(programs, collectTraffic(module, programs))) {
    llvm::DenseMap<Operation *, int64_t> bytes;
    for (const SentBytes &sent : traffic)
      if (exec::isOfValues(sent.kind))
        bytes[sent.action] = sent.bytes;
    exec::PartAttr part;
    for (Operation &action : exec::getSchedule(program).getOps()) {
      if (auto run = dyn_cast<exec::RunOp>(action))
        part = getPart(run, symbols.lookup(run.getSegment()));
      auto sent = bytes.find(&action);
      if (sent == bytes.end() || !part)
        continue;
      ShardingPlan::Sums &sums = found[{part.getBlock(), part.getPhase()}];
      sums.block = part.getBlock();
      sums.phase = part.getPhase();
      // Slices are exchanged, and then gathered.
      sums.calls += isa<exec::GatherOp>(action);
      sums.bytes += sent->second;
      sums.reason = part.getPhase() == Phase::F || part.getPhase() == Phase::E
                        ? "pieces of what is summed over the cut"
                    : computesAgain ? "gradients of what all shards read, and what is computed again"
                                    : "gradients of what all shards read";
    }
  }
  std::vector<ShardingPlan::Sums> all;
  for (auto &[key, sums] : found)
    all.push_back(sums);
  return all;
}

std::optional<ShardingPlan> dsopt::collectSharding(ModuleOp module) {
  ShardingPlan plan;
  plan.ranks = dist::getGrid(module).size(Axis::tp);
  plan.shards = options::tensor_shards(module).value_or(plan.ranks);
  if (plan.shards < 2)
    return std::nullopt;
  plan.parameters = placedParameters(module);
  plan.sums = sumsOf(module);
  auto milliseconds = [&](StringRef name, std::optional<double> &value) {
    if (auto picoseconds = module->getAttrOfType<IntegerAttr>(name))
      value = picoseconds.getInt() / 1e9 * options::micro_batches(module).value_or(1);
  };
  milliseconds(graph::kShardCostAttr, plan.cost);
  milliseconds(graph::kShardBoundAttr, plan.bound);
  return plan;
}

void dsopt::writeSharding(const ShardingPlan &plan, llvm::json::OStream &json) {
  auto axes = [&] {
    json.attributeArray("axes", [&] { json.value(kAxisNames[static_cast<size_t>(Axis::tp)]); });
  };
  json.object([&] {
    json.attributeArray("parameters", [&] {
      for (const ShardingPlan::Parameter &parameter : plan.parameters)
        json.object([&] {
          json.attribute("name", parameter.whole.getModelName());
          json.attributeArray("shape", [&] {
            for (int64_t size : parameter.shape)
              json.value(size);
          });
          if (parameter.seenDim) {
            json.attributeObject("cut", [&] {
              json.attribute("dim", *parameter.seenDim);
              axes();
            });
            return;
          }
          json.attribute("cut", nullptr);
          if (!parameter.why.empty())
            json.attribute("reason", parameter.why);
        });
    });
    json.attributeArray("collectives", [&] {
      for (const ShardingPlan::Sums &sums : plan.sums)
        json.object([&] {
          json.attribute("kind", "all_reduce");
          axes();
          json.attribute("calls", sums.calls);
          json.attribute("bytes", sums.bytes);
          json.attribute("block", sums.block);
          json.attribute("phase", stringifyPhase(sums.phase));
          json.attribute("reason", sums.reason);
        });
    });
    if (plan.cost && plan.bound) {
      json.attribute("cost_ms", *plan.cost);
      json.attribute("bound_ms", *plan.bound);
    }
  });
}

static void printParameters(const ShardingPlan &plan, llvm::raw_ostream &out) {
  size_t width = 10;
  for (const ShardingPlan::Parameter &one : plan.parameters)
    width = std::max(width, one.whole.getModelName().size());
  auto row = [&](StringRef name, const Twine &shape, const Twine &cut) {
    out << llvm::left_justify(name, width + 2) << llvm::left_justify(shape.str(), 16) << cut << "\n";
  };
  row("parameter", "shape", "cut");
  int64_t cut = 0, all = 0;
  for (const ShardingPlan::Parameter &one : plan.parameters) {
    std::string shape;
    llvm::raw_string_ostream stream(shape);
    llvm::interleave(one.shape, stream, "x");
    int64_t elements = graph::numElements(one.whole.getType());
    all += elements;
    cut += one.dim ? elements : 0;
    row(one.whole.getModelName(), shape,
        one.seenDim ? "dimension " + std::to_string(*one.seenDim) + " over tp"
                    : "whole" + (one.why.empty() ? "" : ": " + one.why));
  }
  out << llvm::formatv("{0} of {1} elements are cut: a rank has {2}\n", cut, all,
                       all - cut + cut / plan.ranks);
}

static void printSums(const ShardingPlan &plan, llvm::raw_ostream &out) {
  if (plan.sums.empty())
    return;
  out << "\nblock  phase  sums        bytes a step  why\n";
  int64_t bytes = 0;
  for (const ShardingPlan::Sums &one : plan.sums) {
    out << llvm::formatv("{0,5}  {1,-5}  {2,4}  {3,18}  {4}\n", one.block, stringifyPhase(one.phase),
                         one.calls, one.bytes, one.reason);
    bytes += one.bytes;
  }
  out << llvm::formatv("a rank sends {0} bytes along tp in a step\n", bytes);
}

void dsopt::printSharding(ModuleOp module, llvm::raw_ostream &out) {
  std::optional<ShardingPlan> plan = collectSharding(module);
  if (!plan) {
    out << "no tensor shards: -tp and -tensor-shards say how many there are\n";
    return;
  }
  out << llvm::formatv("tensor shards  {0} over {1} rank{2}\n\n", plan->shards, plan->ranks,
                       plan->ranks > 1 ? "s" : "");
  printParameters(*plan, out);
  printSums(*plan, out);
  if (!plan->cost || !plan->bound)
    return;
  double gap = *plan->bound > 0 ? 100 * (*plan->cost / *plan->bound - 1) : 0;
  out << llvm::formatv(
      "\ncost_ms   {0:F3}  of {1} ranks, at {2:F0} GFLOP/s and {3:F0} GB/s between them: what "
      "cuts are chosen by\nbound_ms  {4:F3}  no choice of cuts is below it: gap {5:F2} %\n",
      *plan->cost, plan->shards, kAssumedFlopsPerThread / 1e9, kAssumedBytesPerSecond / 1e9, *plan->bound,
      gap);
}
