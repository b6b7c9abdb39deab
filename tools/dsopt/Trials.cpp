//===- Trials.cpp - what a model would take with other options ------------===//

#include "Trials.h"
#include "Compile.h"
#include "CompileOptions.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Runtime/ABI.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

Trials::Trials(ModuleOp source, const ParsedOptions &given, const LauncherInfo &launcher, int64_t budget)
    : options(given), launcher(launcher), budget(budget), source(source.clone()) {
  options.values.erase("device-memory");
  options.values["plan"] = {"text"};
}

std::optional<int64_t> Trials::plan(const ParsedOptions &with) const {
  OwningOpRef<ModuleOp> module(source->clone());
  Messages messages(*module->getContext(), /*warns=*/false);
  try {
    takeOptions(*module, with, launcher, "");
    runPasses(*module, passesTo(Stage::Exec, *module, with), Stage::Exec, with, messages);
  } catch (const Error &) {
    return std::nullopt;
  }
  int64_t most = 0;
  for (auto program : module->getOps<exec::ProgramOp>())
    for (exec::MemoryOp memory : exec::getMemories(program))
      if (memory.getKind() == exec::MemoryKind::Device)
        most = std::max<int64_t>(most, memory.getBytes().value_or(0));
  return most;
}

std::optional<int64_t> Trials::recomputed(ParsedOptions with) const {
  bool chooses = with.text("recompute") == "auto";
  if (chooses)
    with.values["recompute"] = {"full"};
  std::optional<int64_t> needed = plan(with);
  if (!chooses || !needed || *needed <= budget)
    return needed;
  with.values["recompute"] = {"auto"};
  with.values["device-memory"] = {std::to_string(budget)};
  std::optional<int64_t> chosen = plan(with);
  return chosen ? chosen : needed;
}

/// What -tile-products may be, ascending: from the smallest tiles that there can be, twice as large each
/// time, up to the largest weight.
static SmallVector<int64_t> tileSizes(ModuleOp module) {
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

Trials::Tiles Trials::chooseTiles(ParsedOptions with) const {
  with.values["tile-products"] = {"none"};
  Tiles best{0, recomputed(with)};
  SmallVector<int64_t> sizes =
      findStage(*source) == Stage::Graph ? tileSizes(*source) : SmallVector<int64_t>();
  if (sizes.empty() || !best.bytes || *best.bytes <= budget)
    return best;
  auto attempt = [&](int64_t elements) {
    with.values["tile-products"] = {std::to_string(elements)};
    return Tiles{elements, recomputed(with)};
  };
  Tiles least = attempt(sizes.front());
  if (!least.bytes || *least.bytes >= *best.bytes)
    return best;
  best = least;
  for (int64_t size : llvm::reverse(ArrayRef(sizes).drop_front())) {
    if (*least.bytes > budget)
      break;
    if (Tiles larger = attempt(size); larger.bytes && *larger.bytes <= budget)
      return larger;
  }
  return best;
}

int64_t Trials::chooseTiles() const { return chooseTiles(options).elements; }

std::optional<int64_t> Trials::bytes(ArrayRef<Remedy> remedies) const {
  ParsedOptions with = options;
  for (const Remedy &remedy : remedies)
    with.values[remedy.name] = {remedy.value};
  return with.text("tile-products") == "auto" ? chooseTiles(with).bytes : recomputed(with);
}
