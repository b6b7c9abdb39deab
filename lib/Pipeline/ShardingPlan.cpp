//===- ShardingPlan.cpp - what tensor shards cut, and what they send ------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Symbols.h"
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

namespace {
/// A parameter that is no other's part, with the first of its own.
struct Placed {
  graph::ParameterOp whole;
  std::optional<int64_t> dim;
};

/// The sums of values in one phase of a block.
struct Sums {
  int64_t block = 0, calls = 0, bytes = 0; ///< bytes that a rank sends in a step
  Phase phase = Phase::F;
};
} // namespace

static std::vector<Placed> placedParameters(ModuleOp module) {
  llvm::DenseMap<StringAttr, graph::ParameterOp> firsts; ///< by the whole's name
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (parameter.getPartRuns())
      firsts.try_emplace(parameter.getPartOfAttr().getAttr(), parameter);
  std::vector<Placed> placed;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    if (parameter.getPartOf())
      continue;
    graph::ParameterOp first = firsts.lookup(parameter.getSymNameAttr());
    placed.push_back({parameter, first ? cutOf(parameter, first) : std::nullopt});
  }
  return placed;
}

/// In order of blocks; those of a step.
static std::vector<Sums> sumsOf(ModuleOp module) {
  std::map<std::pair<int64_t, Phase>, Sums> found;
  Grid grid = dist::getGrid(module);
  int64_t microBatches = options::micro_batches(module).value_or(1);
  for (auto function : module.getOps<func::FuncOp>()) {
    std::optional<Phase> phase = graph::getPhase(function);
    auto block = function->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    if (!phase || !block || phase == Phase::E)
      continue;
    function.walk([&](dist::AllReduceOp op) {
      Sums &sums = found[{block.getInt(), *phase}];
      int64_t ranks = grid.count(op.getAxes().getParts());
      sums.block = block.getInt();
      sums.phase = *phase;
      ++sums.calls;
      sums.bytes += 2 * (ranks - 1) * graph::numBytes(op.getValue().getType()) / ranks * microBatches;
    });
  }
  std::vector<Sums> all;
  for (auto &[key, sums] : found)
    all.push_back(sums);
  return all;
}

void dsopt::printSharding(ModuleOp module, llvm::raw_ostream &out) {
  int64_t ranks = dist::getGrid(module).size(Axis::tp);
  int64_t shards = options::tensor_shards(module).value_or(ranks);
  out << llvm::formatv("tensor shards  {0} over {1} rank{2}\n\n", shards, ranks, ranks > 1 ? "s" : "");
  size_t width = 10;
  std::vector<Placed> placed = placedParameters(module);
  for (const Placed &one : placed)
    width = std::max(width, graph::ParameterOp(one.whole).getModelName().size());
  auto row = [&](StringRef name, const Twine &shape, const Twine &cut) {
    out << llvm::left_justify(name, width + 2) << llvm::left_justify(shape.str(), 16) << cut << "\n";
  };
  row("parameter", "shape", "cut");
  int64_t cut = 0, all = 0;
  for (const Placed &one : placed) {
    graph::ParameterOp whole = one.whole;
    std::string shape;
    llvm::raw_string_ostream stream(shape);
    llvm::interleave(cast<ShapedType>(whole.getType()).getShape(), stream, "x");
    int64_t elements = graph::numElements(whole.getType());
    all += elements;
    cut += one.dim ? elements : 0;
    std::optional<StringRef> why = whole.getUncut();
    row(whole.getModelName(), shape,
        one.dim ? "dimension " + std::to_string(*one.dim) + " over tp"
                : (Twine("whole") + (why ? ": " + *why : StringRef())).str());
  }
  out << llvm::formatv("{0} of {1} elements are cut: a rank has {2}\n", cut, all, all - cut + cut / ranks);
  std::vector<Sums> sums = sumsOf(module);
  if (sums.empty())
    return;
  out << "\nblock  phase  sums        bytes a step  why\n";
  int64_t bytes = 0;
  for (const Sums &one : sums) {
    out << llvm::formatv("{0,5}  {1,-5}  {2,4}  {3,18}  {4}\n", one.block, stringifyPhase(one.phase),
                         one.calls, one.bytes,
                         one.phase == Phase::F ? "pieces of what is summed over the cut"
                                               : "gradients of what all shards read");
    bytes += one.bytes;
  }
  out << llvm::formatv("a rank sends {0} bytes along tp in a step\n", bytes);
}
