//===- ShardingPlan.cpp - what shards cut, and what they send -------------===//

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

using Kind = ShardingPlan::Kind;

static StringRef nameOf(Kind kind) {
  switch (kind) {
  case Kind::AllGather:
    return "all_gather";
  case Kind::AllReduce:
    return "all_reduce";
  case Kind::ReduceScatter:
    return "reduce_scatter";
  case Kind::AllToAll:
    return "all_to_all";
  case Kind::Shift:
    return "shift";
  }
  llvm_unreachable("a kind");
}

/// Of collectives along tp: rows of what ranks have between products.
static StringRef reasonOfRows(Kind kind, bool isForward, bool computesAgain) {
  if (kind == Kind::ReduceScatter)
    return isForward ? "rows of what is summed over the cut" : "rows of gradients of what all shards read";
  return isForward       ? "rows that all shards read"
         : computesAgain ? "gradients of rows, and what is computed again"
                         : "gradients of rows";
}

static StringRef reasonOf(Kind kind, StringRef axes, Phase phase, bool computesAgain) {
  bool isForward = phase == Phase::F || phase == Phase::E;
  if (axes == kAxisNames[static_cast<size_t>(Axis::tp)] && kind != Kind::AllReduce)
    return reasonOfRows(kind, isForward, computesAgain);
  switch (kind) {
  case Kind::AllGather:
    return isForward ? "what is read at all positions" : "gradients of slices, and what is computed again";
  case Kind::ReduceScatter:
    return "gradients of what is read at all positions";
  case Kind::AllToAll:
    return isForward       ? "positions for heads"
           : computesAgain ? "gradients of positions for heads, and what is computed again"
                           : "gradients of positions for heads";
  case Kind::Shift:
    return isForward ? "keys and values along a ring" : "keys, values and their gradients along a ring";
  case Kind::AllReduce:
    break;
  }
  return isForward       ? "pieces of what is summed over the cut"
         : computesAgain ? "gradients of what all shards read, and what is computed again"
                         : "gradients of what all shards read";
}

namespace {
/// What is known of an exchange of slices once all that is done to them has been seen.
struct Exchange {
  exec::PartAttr part;
  StringRef axes;
  int64_t bytes = 0;
  Kind kind = Kind::AllToAll;
};
} // namespace

/// The collectives of a program's values, each behind the run that makes what it sends.
static std::vector<Exchange> exchangesOf(exec::ProgramOp program, ArrayRef<SentBytes> traffic,
                                         const SymbolTable &symbols) {
  llvm::DenseMap<Operation *, const SentBytes *> ofValues;
  for (const SentBytes &sent : traffic)
    if (exec::isOfValues(sent.kind))
      ofValues[sent.action] = &sent;
  std::vector<Exchange> all;
  llvm::DenseMap<Attribute, size_t> arrived; ///< where exchanged slices lie
  exec::PartAttr part;
  for (Operation &action : exec::getSchedule(program).getOps()) {
    if (auto run = dyn_cast<exec::RunOp>(action))
      part = getPart(run, symbols.lookup(run.getSegment()));
    // Slices that are added are of a sum, which may be gathered.
    if (auto add = dyn_cast<exec::AddOp>(action))
      if (auto found = arrived.find(add.getTarget().getBuffer()); found != arrived.end())
        all[found->second].kind = Kind::ReduceScatter;
    const SentBytes *sent = ofValues.lookup(&action);
    if (!sent || !part)
      continue;
    auto gather = dyn_cast<exec::GatherOp>(action);
    if (gather)
      if (auto found = arrived.find(gather.getSlice().getBuffer()); found != arrived.end()) {
        all[found->second].kind = Kind::AllReduce;
        all[found->second].bytes += sent->bytes;
        continue;
      }
    if (auto exchange = dyn_cast<exec::AllToAllOp>(action))
      arrived[exchange.getTarget().getBuffer()] = all.size();
    Kind kind = gather ? Kind::AllGather : isa<exec::ShiftOp>(action) ? Kind::Shift : Kind::AllToAll;
    all.push_back({part, sent->over.getValue(), sent->bytes, kind});
  }
  return all;
}

static std::vector<ShardingPlan::Collectives> collectivesOf(ModuleOp module) {
  SmallVector<exec::ProgramOp> programs = exec::getStepPrograms(module);
  bool computesAgain = options::recompute(module) != "none";
  SymbolTable symbols(module);
  std::map<std::tuple<int64_t, Phase, std::string, Kind>, ShardingPlan::Collectives> found;
  for (auto [program, traffic] : llvm::zip_equal(programs, collectTraffic(module, programs)))
    for (const Exchange &exchange : exchangesOf(program, traffic, symbols)) {
      int64_t block = exchange.part.getBlock();
      Phase phase = exchange.part.getPhase();
      ShardingPlan::Collectives &one = found[{block, phase, exchange.axes.str(), exchange.kind}];
      one.block = block;
      one.phase = phase;
      one.kind = exchange.kind;
      one.axes = exchange.axes.str();
      ++one.calls;
      one.bytes += exchange.bytes;
      one.reason = reasonOf(exchange.kind, exchange.axes, phase, computesAgain);
    }
  std::vector<ShardingPlan::Collectives> all;
  for (auto &[key, one] : found)
    all.push_back(one);
  return all;
}

static std::vector<ShardingPlan::Attention> attentionOf(ModuleOp module) {
  std::vector<ShardingPlan::Attention> all;
  if (auto kept = module->getAttrOfType<ArrayAttr>(graph::kSequenceGroupsAttr))
    for (auto one : kept.getAsRange<DictionaryAttr>()) {
      auto count = [&](StringRef name) { return one.getAs<IntegerAttr>(name).getInt(); };
      auto list = [&](StringRef name) {
        return SmallVector<int64_t>(one.getAs<DenseI64ArrayAttr>(name).asArrayRef());
      };
      all.push_back(
          {count("attentions"), count("group"), list("groups"), list("elements"), list("picoseconds")});
    }
  return all;
}

std::optional<ShardingPlan> dsopt::collectSharding(ModuleOp module) {
  ShardingPlan plan;
  Grid grid = dist::getGrid(module);
  plan.ranks = grid.size(Axis::tp);
  plan.shards = options::tensor_shards(module).value_or(plan.ranks);
  plan.sequenceRanks = grid.size(Axis::sp);
  plan.sequenceShards = options::sequence_shards(module).value_or(plan.sequenceRanks);
  if (plan.shards < 2 && plan.sequenceShards < 2)
    return std::nullopt;
  plan.parameters = placedParameters(module);
  plan.collectives = collectivesOf(module);
  plan.attention = attentionOf(module);
  auto milliseconds = [&](StringRef name, std::optional<double> &value) {
    if (auto picoseconds = module->getAttrOfType<IntegerAttr>(name))
      value = picoseconds.getInt() / 1e9 * options::micro_batches(module).value_or(1);
  };
  milliseconds(graph::kShardCostAttr, plan.cost);
  milliseconds(graph::kShardBoundAttr, plan.bound);
  return plan;
}

void dsopt::writeSharding(const ShardingPlan &plan, llvm::json::OStream &json) {
  auto axes = [&](StringRef name) { json.attributeArray("axes", [&] { json.value(name); }); };
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
              axes(kAxisNames[static_cast<size_t>(Axis::tp)]);
            });
            return;
          }
          json.attribute("cut", nullptr);
          if (!parameter.why.empty())
            json.attribute("reason", parameter.why);
        });
    });
    json.attributeArray("collectives", [&] {
      for (const ShardingPlan::Collectives &one : plan.collectives)
        json.object([&] {
          json.attribute("kind", nameOf(one.kind));
          axes(one.axes);
          json.attribute("calls", one.calls);
          json.attribute("bytes", one.bytes);
          json.attribute("block", one.block);
          json.attribute("phase", stringifyPhase(one.phase));
          json.attribute("reason", one.reason);
        });
    });
    if (!plan.attention.empty())
      json.attributeArray("attention", [&] {
        for (const ShardingPlan::Attention &one : plan.attention)
          json.object([&] {
            json.attribute("attentions", one.attentions);
            json.attribute("group", one.group);
            json.attribute("ring", plan.sequenceRanks / one.group);
            json.attributeArray("choices", [&] {
              for (auto [group, elements, time] : llvm::zip_equal(one.groups, one.elements, one.picoseconds))
                json.object([&, group = group, elements = elements, time = time] {
                  json.attribute("group", group);
                  json.attribute("elements", elements);
                  json.attribute("ms", time / 1e9);
                });
            });
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

static void printTraffic(const ShardingPlan &plan, llvm::raw_ostream &out) {
  if (plan.collectives.empty())
    return;
  out << "\nblock  phase  kind            over  calls        bytes a step  why\n";
  std::map<StringRef, int64_t> bytes;
  for (const ShardingPlan::Collectives &one : plan.collectives) {
    out << llvm::formatv("{0,5}  {1,-5}  {2,-14}  {3,-4}  {4,5}  {5,18}  {6}\n", one.block,
                         stringifyPhase(one.phase), nameOf(one.kind), one.axes, one.calls, one.bytes,
                         one.reason);
    bytes[one.axes] += one.bytes;
  }
  for (auto [axes, sent] : bytes)
    out << llvm::formatv("a rank sends {0} bytes along {1} in a step\n", sent, axes);
}

/// How many ranks exchange heads, and what else could be.
static void printAttention(const ShardingPlan &plan, llvm::raw_ostream &out) {
  if (plan.attention.empty())
    return;
  out << "\nattention  heads over  ring of  elements a rank sends     ms\n";
  for (const ShardingPlan::Attention &one : plan.attention)
    for (auto [group, elements, time] : llvm::zip_equal(one.groups, one.elements, one.picoseconds))
      out << llvm::formatv("{0,9}  {1,10}  {2,7}  {3,21}  {4,5:F3}{5}\n", one.attentions, group,
                           plan.sequenceRanks / group, elements, time / 1e9,
                           group == one.group ? "  chosen" : "");
}

void dsopt::printSharding(ModuleOp module, llvm::raw_ostream &out) {
  std::optional<ShardingPlan> plan = collectSharding(module);
  if (!plan) {
    out << "no tensor shards: -tp and -tensor-shards say how many there are; nor sequence shards: -sp and "
           "-sequence-shards\n";
    return;
  }
  auto line = [&](StringRef kind, int64_t shards, int64_t ranks) {
    if (shards > 1)
      out << llvm::formatv("{0} shards  {1} over {2} rank{3}\n", kind, shards, ranks, ranks > 1 ? "s" : "");
  };
  line("tensor", plan->shards, plan->ranks);
  line("sequence", plan->sequenceShards, plan->sequenceRanks);
  if (plan->shards > 1) {
    out << "\n";
    printParameters(*plan, out);
  }
  printTraffic(*plan, out);
  printAttention(*plan, out);
  if (!plan->cost || !plan->bound)
    return;
  double gap = *plan->bound > 0 ? 100 * (*plan->cost / *plan->bound - 1) : 0;
  out << llvm::formatv(
      "\ncost_ms   {0:F3}  of {1} ranks, at {2:F0} GFLOP/s and {3:F0} GB/s between them: what "
      "cuts are chosen by\nbound_ms  {4:F3}  no choice of cuts is below it: gap {5:F2} %\n",
      *plan->cost, plan->shards, kAssumedFlopsPerThread / 1e9, kAssumedBytesPerSecond / 1e9, *plan->bound,
      gap);
}
