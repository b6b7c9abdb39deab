//===- Trials.cpp - what a model would need with other options ------------===//

#include "Trials.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Planner/FewMicroBatches.h"
#include "dsopt/Runtime/ABI.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

Trials::Trials(ModuleOp source, const ParsedOptions &given, const LauncherInfo &launcher, int64_t budget)
    : options(given), launcher(launcher), budget(budget), source(source.clone()) {
  options.values.erase("device-memory");
  options.values["plan"] = {"text"};
  bool hasSizes = llvm::any_of(options.pairList("dim"), [](const auto &dimension) {
    return dimension.second.find(',') != std::string::npos;
  });
  shares = findStage(source) == Stage::Graph && !options.has("insert-pass") && !hasSizes;
}

OwningOpRef<ModuleOp> Trials::begin(const ParsedOptions &with) {
  OwningOpRef<ModuleOp> module(source->clone());
  takeOptions(*module, with, launcher, "");
  if (!shares)
    return module;
  auto given = (*module)->getAttrOfType<DictionaryAttr>(kOptionsAttr);
  NamedAttrList earlier(given);
  // What nothing reads before stage 5; of where the optimizer's state lies parameters that are offloaded
  // know.
  std::vector<std::string> later;
  for (const runtime::OptionRow &row : runtime::optionTable())
    if (row.use == runtime::OptionUse::Schedule &&
        (llvm::StringRef(row.name) != "offload-optimizer" || options::offload_params(*module) == "none"))
      later.push_back(optionKey(row.name));
  for (llvm::StringRef name : later)
    earlier.erase(name);
  OwningOpRef<ModuleOp> &known = shared[earlier.getDictionary(module->getContext())];
  if (!known) {
    Messages messages(*module->getContext(), /*warns=*/false);
    runPasses(*module, passesTo(Stage::Dist, *module, with), Stage::Dist, with, messages);
    known = std::move(module);
  }
  module = OwningOpRef<ModuleOp>(known->clone());
  NamedAttrList all((*module)->getAttrOfType<DictionaryAttr>(kOptionsAttr));
  for (llvm::StringRef name : later) {
    all.erase(name);
    if (Attribute value = given.get(name))
      all.set(name, value);
  }
  (*module)->setAttr(kOptionsAttr, all.getDictionary(module->getContext()));
  return module;
}

std::optional<Trials::Need> Trials::plan(OwningOpRef<ModuleOp> module, const ParsedOptions &with) {
  Messages messages(*module->getContext(), /*warns=*/false);
  try {
    std::vector<std::string> passes = passesTo(Stage::Exec, *module, with);
    // They say nothing of bytes; what is proposed is verified when it is compiled.
    if (shares)
      llvm::erase_if(
          passes, [](const std::string &pass) { return pass == "report-overlap" || pass == "verify-exec"; });
    runPasses(*module, std::move(passes), Stage::Exec, with, messages);
  } catch (const Error &) {
    return std::nullopt;
  }
  Need most;
  for (auto program : module->getOps<exec::ProgramOp>()) {
    Need here;
    for (exec::MemoryOp memory : exec::getMemories(program)) {
      if (memory.getKind() != exec::MemoryKind::Device)
        continue;
      here.bytes = std::max<int64_t>(here.bytes, memory.getBytes().value_or(0));
      if (DictionaryAttr live = memory.getLiveAttr())
        for (exec::BufferKind kind :
             {exec::BufferKind::Parameters, exec::BufferKind::Gradients, exec::BufferKind::Optimizer})
          if (auto bytes = live.getAs<IntegerAttr>(exec::stringifyBufferKind(kind)))
            here.states += bytes.getInt();
    }
    most.bytes = std::max(most.bytes, here.bytes);
    most.states = std::max(most.states, here.states);
  }
  return most;
}

std::optional<Trials::Need> Trials::estimate(ModuleOp module, const ParsedOptions &with,
                                             std::optional<int64_t> growth) {
  Builder builder(module.getContext());
  int64_t all = options::micro_batches(module).value_or(1),
          given = options::gather_window(module).value_or(0);
  auto [few, window] = FewMicroBatches(module, all).of(std::max<int64_t>(given, 1));
  if (given > 0)
    setOption(module, "gather_window", builder.getI64IntegerAttr(window));
  auto planned = [&](int64_t microBatches) {
    OwningOpRef<ModuleOp> copy(module.clone());
    setOption(*copy, "micro_batches", builder.getI64IntegerAttr(microBatches));
    return plan(std::move(copy), with);
  };
  std::optional<Need> one = planned(few);
  // Where states are too much already it does not matter what further ones take.
  if (int64_t more = std::min(few + window, all); one && !growth && one->states <= budget && more > few)
    if (std::optional<Need> other = planned(more))
      growth = std::max<int64_t>(other->bytes - one->bytes, 0) * (all - few) / (more - few);
  if (one) {
    one->growth = growth.value_or(0);
    one->bytes += one->growth;
  }
  return one;
}

std::optional<Trials::Need> Trials::need(const ParsedOptions &with, const Need *full) {
  OwningOpRef<ModuleOp> module;
  try {
    module = begin(with);
  } catch (const Error &) {
    return std::nullopt;
  }
  int64_t microBatches = options::micro_batches(*module).value_or(1);
  if (!estimates || !shares || !FewMicroBatches(*module, microBatches).isLong(*module))
    return plan(std::move(module), with);
  if (full)
    return estimate(*module, with, full->growth);
  std::optional<Need> found = estimate(*module, with, std::nullopt);
  bool isClose = found && std::abs(found->bytes - budget) <= budget / 50;
  return isClose ? plan(std::move(module), with) : found;
}

/// What -tile-products may be, ascending: from the smallest tiles that there can be, twice as large each
/// time, up to the largest weight.
static SmallVector<int64_t> tileSizes(ModuleOp module) {
  if (findStage(module) != Stage::Graph)
    return {};
  int64_t largest = 0, smallest = INT64_MAX;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    ArrayRef<int64_t> shape = cast<ShapedType>(parameter.getType()).getShape();
    if (shape.size() != 2 || shape[0] < 2 * DSOPT_GEMM_CHUNK)
      continue;
    largest = std::max(largest, shape[0] * shape[1]);
    smallest = std::min(smallest, DSOPT_GEMM_CHUNK * shape[1]);
  }
  SmallVector<int64_t> sizes;
  for (int64_t size = smallest; size < largest; size *= 2)
    sizes.push_back(size);
  return sizes;
}

RemedySearch Trials::search() {
  return {[this](llvm::StringRef name) { return options.text(name.str()); },
          [this](const Remedies &remedies, const Need *full) {
            ParsedOptions with = options;
            for (const Remedy &remedy : remedies)
              with.values[remedy.name] = {remedy.value};
            return need(with, full);
          },
          tileSizes(*source), budget};
}
