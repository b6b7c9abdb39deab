//===- Blocks.cpp - the outlined blocks of a module -----------------------===//

#include "dsopt/Dialect/Graph/Blocks.h"

using namespace mlir;
using namespace dsopt::graph;

SmallVector<func::FuncOp, 4> dsopt::graph::Block::functions() const {
  SmallVector<func::FuncOp, 4> all;
  for (func::FuncOp function : {forward, backward, weights, evaluation})
    if (function)
      all.push_back(function);
  return all;
}

SmallVector<func::FuncOp, 4> dsopt::graph::Block::stepFunctions() const {
  SmallVector<func::FuncOp, 4> all = functions();
  if (forward && evaluation)
    all.pop_back();
  return all;
}

FailureOr<SmallVector<dsopt::graph::Block>> dsopt::graph::collectBlocks(ModuleOp module) {
  SmallVector<Block> blocks;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto number = function->getAttrOfType<IntegerAttr>(kBlockAttr);
    if (!number)
      continue;
    std::optional<Phase> phase = getPhase(function);
    if (!phase)
      return function.emitError("is of block ") << number.getInt() << " and has no " << kPhaseAttr;
    if (blocks.size() <= (size_t)number.getInt())
      blocks.resize(number.getInt() + 1);
    Block &block = blocks[number.getInt()];
    func::FuncOp &slot = phase == Phase::F   ? block.forward
                         : phase == Phase::B ? block.backward
                         : phase == Phase::W ? block.weights
                                             : block.evaluation;
    if (slot) {
      InFlightDiagnostic diag = function.emitError("is a second phase ")
                                << stringifyPhase(*phase) << " of block " << number.getInt();
      diag.attachNote(slot.getLoc()) << "the first is here";
      return diag;
    }
    slot = function;
  }
  for (auto [number, block] : llvm::enumerate(blocks))
    if (!block.forward && !block.evaluation)
      return module.emitError("block ")
             << number << " has no forward function, but there are " << blocks.size() << " blocks";
  return blocks;
}

llvm::SetVector<StringAttr> dsopt::graph::readParameters(func::FuncOp function, SymbolTable &symbols) {
  llvm::SetVector<StringAttr> names;
  function.walk([&](ReadOp read) {
    if (symbols.lookup<ParameterOp>(read.getStateAttr().getAttr()))
      names.insert(read.getStateAttr().getAttr());
  });
  return names;
}

llvm::SetVector<StringAttr> dsopt::graph::accumulatedStates(func::FuncOp function) {
  llvm::SetVector<StringAttr> names;
  function.walk([&](AccumulateOp op) { names.insert(op.getStateAttr().getAttr()); });
  return names;
}
