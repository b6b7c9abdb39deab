//===- ParameterUses.cpp - what blocks and updates see of parameters ------===//

#include "ParameterUses.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Dialect/Graph/Symbols.h"

using namespace mlir;
using namespace dsopt;

/// Statistics that nothing reads, which are overwritten before, belong to the block that makes their new
/// value.
static void addUnread(ModuleOp module, SymbolTable &symbols,
                      llvm::MapVector<StringAttr, SmallVector<int64_t>> &readers) {
  for (auto function : module.getOps<func::FuncOp>())
    for (const graph::Statistic &statistic : graph::statisticsOf(function)) {
      Operation *terminator = function.getBody().front().getTerminator();
      auto run = terminator->getOperand(statistic.result).getDefiningOp<graph::RunOp>();
      auto block = run ? symbols.lookup<func::FuncOp>(run.getCallee()) : func::FuncOp();
      auto number = block ? block->getAttrOfType<IntegerAttr>(graph::kBlockAttr) : IntegerAttr();
      if (number && !readers.count(statistic.parameter.getAttr()))
        readers[statistic.parameter.getAttr()] = {number.getInt()};
    }
}

llvm::MapVector<StringAttr, SmallVector<int64_t>>
dsopt::findReaders(ModuleOp module, ArrayRef<graph::Block> blocks, SymbolTable &symbols) {
  llvm::MapVector<StringAttr, SmallVector<int64_t>> readers;
  for (auto [number, block] : llvm::enumerate(blocks))
    for (func::FuncOp function : block.functions())
      for (StringAttr name : graph::readParameters(function, symbols))
        if (auto &list = readers[name]; list.empty() || list.back() != (int64_t)number)
          list.push_back(number);
  addUnread(module, symbols, readers);
  return readers;
}

llvm::DenseSet<StringAttr> dsopt::findEarly(ArrayRef<graph::Block> blocks, SymbolTable &symbols) {
  llvm::DenseSet<StringAttr> early;
  for (const graph::Block &block : blocks)
    for (func::FuncOp function : block.functions())
      if (graph::getPhase(function) == Phase::F)
        for (StringAttr state : graph::accumulatedStates(function))
          early.insert(symbols.lookup<graph::StateOp>(state).getParameterAttr().getAttr());
  return early;
}

SmallVector<WholeTiles> dsopt::findWholeTiles(ModuleOp module, ArrayRef<graph::Block> blocks,
                                              SymbolTable &symbols) {
  llvm::MapVector<StringAttr, WholeTiles> found;
  auto update = symbols.lookup<func::FuncOp>(graph::kUpdateFunction);
  // Tensor shards are no tiles: the same blocks read all of them.
  auto isTile = [](graph::ParameterOp parameter) {
    return parameter.getPartOf() && !parameter.getPartRuns();
  };
  if (!update || llvm::none_of(module.getOps<graph::ParameterOp>(), isTile))
    return {};
  auto readers = findReaders(module, blocks, symbols);
  update.walk([&](OptimizerOpInterface rule) {
    if (rule.getScope() == UpdateScope::Elements)
      return;
    for (Value operand : rule->getOperands()) {
      auto read = operand.getDefiningOp<graph::ReadOp>();
      auto tile = read ? symbols.lookup<graph::ParameterOp>(graph::parameterRead(read, symbols).getAttr())
                       : graph::ParameterOp();
      auto reader = tile && isTile(tile) ? readers.find(tile.getSymNameAttr()) : readers.end();
      if (reader == readers.end())
        continue;
      StringAttr whole = tile.getPartOfAttr().getAttr();
      auto [first, last] = std::minmax_element(reader->second.begin(), reader->second.end());
      auto [entry, isNew] = found.try_emplace(whole, WholeTiles{whole, rule, *first, *last});
      entry->second.first = std::min(entry->second.first, *first);
      entry->second.last = std::max(entry->second.last, *last);
    }
  });
  return llvm::map_to_vector(found, [](auto &entry) { return entry.second; });
}
