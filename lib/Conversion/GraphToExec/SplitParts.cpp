//===- SplitParts.cpp - cut functions of blocks at collectives ------------===//
//
// What a collective on values needs runs before it, what needs its result behind it: a function becomes one
// for each of these parts, and the collectives stand between their runs. What a collective does not need runs
// beside it, in the part behind, if that keeps nothing longer.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Layouts.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

namespace dsopt {
#define GEN_PASS_DEF_SPLITPARTS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
using Collective = dist::ValueCollectiveOpInterface;

struct Part {
  SmallVector<Operation *> ops;
  SmallVector<Collective> collectives; ///< behind it, in order
  func::FuncOp function;
  IRMapping values;
  SmallVector<Value> inputs;      ///< of the whole function
  llvm::SetVector<Value> results; ///< of the whole function
};

class PartSplitter {
public:
  PartSplitter(func::FuncOp function, SymbolTable &symbols) : function(function), symbols(symbols) {}
  LogicalResult split();
  void replace(graph::RunOp run);

private:
  LogicalResult findLevels();
  LogicalResult raiseLevels();
  void delay();
  int64_t levelBehind(Value value) const;
  void require(Part &part, Value value, OpBuilder &builder);
  void fill(Part &part, int64_t number);
  void need(Value value);
  void close(Part &part);
  LogicalResult returnOnce(Part &part);
  void showOperand(Collective collective, IRMapping &values, OpBuilder &builder);

  func::FuncOp function;
  SymbolTable &symbols;
  llvm::DenseMap<Operation *, int64_t> levels;
  llvm::DenseMap<Value, Value> shapes; ///< what is returned under another shape than collectives take
  std::vector<Part> parts;
};
} // namespace

/// The first part that can read a value.
int64_t PartSplitter::levelBehind(Value value) const {
  Operation *op = graph::storageOf(value).getDefiningOp();
  if (!op || graph::isMadeInPlace(op))
    return 0;
  return levels.lookup(op) + isa<Collective>(op);
}

LogicalResult PartSplitter::findLevels() {
  if (failed(raiseLevels()))
    return failure();
  delay();
  return raiseLevels();
}

/// What no collective behind its part needs goes to the next one, while what is sent travels: as long as all
/// that it reads is there then anyway.
void PartSplitter::delay() {
  llvm::DenseSet<Operation *> needed;
  llvm::DenseMap<Value, int64_t> lastRead; ///< of bytes, the last part that has them
  int64_t last = 0;
  for (Operation &op : function.front()) {
    if (graph::isReadView(&op))
      continue;
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>(), travels = isa<Collective>(op);
    if (travels)
      last = std::max(last, levels.lookup(&op) + 1);
    for (Value operand : op.getOperands()) {
      int64_t &known = lastRead[graph::storageOf(operand)];
      known = std::max(known, isEnd ? std::numeric_limits<int64_t>::max() : levels.lookup(&op) + travels);
    }
  }
  for (Operation &op : llvm::reverse(function.front().without_terminator()))
    if (isa<Collective>(op) || graph::isWriteView(&op) || needed.contains(&op))
      for (Value operand : op.getOperands())
        if (Operation *made = graph::storageOf(operand).getDefiningOp();
            made && !graph::isMadeInPlace(made) && !isa<Collective>(made) &&
            levels.lookup(made) == levels.lookup(&op))
          needed.insert(made);
  for (Operation &op : function.front().without_terminator()) {
    if (isa<Collective>(op) || needed.contains(&op) || graph::isMadeInPlace(&op) || graph::isReadView(&op) ||
        graph::isWriteView(&op) || levels.lookup(&op) >= last)
      continue;
    int64_t level = levels.lookup(&op);
    bool isThere = llvm::all_of(op.getOperands(), [&](Value operand) {
      Value bytes = graph::storageOf(operand);
      Operation *made = bytes.getDefiningOp();
      return (made && (graph::isMadeInPlace(made) || levels.lookup(made) > level)) ||
             lastRead.lookup(bytes) > level;
    });
    if (isThere)
      levels[&op] = level + 1;
  }
}

LogicalResult PartSplitter::raiseLevels() {
  int64_t most = llvm::range_size(function.getBody().getOps<Collective>());
  for (bool changes = true; changes;) {
    changes = false;
    auto raise = [&](Operation *op, int64_t level) {
      int64_t &known = levels[op];
      changes |= known < level;
      known = std::max(known, level);
    };
    for (Operation &op : function.front().without_terminator()) {
      if (graph::isMadeInPlace(&op) || graph::isReadView(&op))
        continue;
      for (Value operand : op.getOperands())
        raise(&op, levelBehind(operand));
      if (levels[&op] > most)
        return op.emitOpError("writes into the bytes of what is made behind a collective that reads it");
      // What is written into another value's bytes is written where that is made.
      if (graph::isWriteView(&op))
        for (Value operand : op.getOperands())
          if (Operation *source = graph::storageOf(operand).getDefiningOp();
              source && !graph::isMadeInPlace(source))
            raise(source, levels[&op]);
    }
  }
  return success();
}

/// Makes a value of the whole available in a part.
void PartSplitter::require(Part &part, Value value, OpBuilder &builder) {
  if (part.values.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  bool isView = graph::isReadView(op);
  if (isView)
    require(part, op->getOperand(0), builder);
  if (isView || graph::isMadeInPlace(op)) {
    builder.clone(*op, part.values);
    return;
  }
  part.inputs.push_back(value);
  part.values.map(value, part.function.front().addArgument(value.getType(), value.getLoc()));
  need(value);
}

/// The part that computes a value returns it.
void PartSplitter::need(Value value) {
  Operation *op = graph::storageOf(value).getDefiningOp();
  if (op && !graph::isMadeInPlace(op) && !isa<Collective>(op))
    parts[levels.lookup(op)].results.insert(value);
}

void PartSplitter::fill(Part &part, int64_t number) {
  std::string name = function.getName().str() + (number ? "." + std::to_string(number) : "");
  OpBuilder builder(function);
  part.function = func::FuncOp::create(builder, function.getLoc(), name, builder.getFunctionType({}, {}));
  part.function.setVisibility(function.getVisibility());
  part.function->setDiscardableAttrs(function->getDiscardableAttrDictionary());
  if (number)
    part.function->setAttr(graph::kPartAttr, builder.getI64IntegerAttr(number));
  builder.setInsertionPointToEnd(part.function.addEntryBlock());
  for (Operation *op : part.ops) {
    for (Value operand : op->getOperands())
      require(part, operand, builder);
    builder.clone(*op, part.values);
  }
}

void PartSplitter::close(Part &part) {
  OpBuilder builder = OpBuilder::atBlockEnd(&part.function.front());
  SmallVector<Value> returned;
  for (Value value : part.results) {
    // A collective takes what lies under another shape: it is shown here, before the end.
    require(part, value, builder);
    returned.push_back(part.values.lookup(value));
  }
  func::ReturnOp::create(builder, function.getLoc(), returned);
  part.function.setType(
      builder.getFunctionType(part.function.front().getArgumentTypes(), ValueRange(returned).getTypes()));
}

/// Of values that lie in the same bytes one is returned: collectives may take it under another shape.
LogicalResult PartSplitter::returnOnce(Part &part) {
  llvm::DenseMap<Value, Value> known; ///< by what they lie in
  auto isTakenOnly = [](Value value) {
    return graph::isReadView(value.getDefiningOp()) &&
           llvm::all_of(value.getUsers(), [](Operation *user) { return !isa<func::ReturnOp>(user); });
  };
  for (Value value : part.results.takeVector()) {
    Value &first = known[graph::storageOf(value)];
    if (!first) {
      part.results.insert(first = value);
      continue;
    }
    bool isWhole = graph::numElements(value.getType()) == graph::numElements(first.getType());
    if (isWhole && isTakenOnly(value)) {
      shapes[value] = first;
      continue;
    }
    if (!isWhole || !isTakenOnly(first))
      return function.emitError("hands on one value under two shapes");
    for (auto &[taken, shown] : shapes)
      if (shown == first)
        shown = value;
    shapes[first] = value;
    part.results.remove(first);
    part.results.insert(first = value);
  }
  return success();
}

LogicalResult PartSplitter::split() {
  if (failed(findLevels()))
    return failure();
  for (Operation &op : function.front().without_terminator()) {
    if (graph::isMadeInPlace(&op) || graph::isReadView(&op))
      continue;
    size_t level = levels.lookup(&op);
    if (parts.size() <= level)
      parts.resize(level + 1);
    if (auto collective = dyn_cast<Collective>(op))
      parts[level].collectives.push_back(collective);
    else
      parts[level].ops.push_back(&op);
  }
  for (auto [number, part] : llvm::enumerate(parts)) {
    if (!part.ops.empty())
      fill(part, number);
    for (Collective collective : part.collectives) {
      std::optional<graph::Layout> layout = graph::locate(collective->getOperand(0)).layout;
      Operation *source = graph::storageOf(collective->getOperand(0)).getDefiningOp();
      // A part that is cut away would take what is made where it is used with it.
      if (!layout || !layout->isContiguous() || graph::isMadeInPlace(source))
        return collective->emitOpError(
            "takes what does not lie by itself, expected a value that its block makes");
      need(collective->getOperand(0));
    }
  }
  for (Value value : function.front().getTerminator()->getOperands())
    need(value);
  for (Part &part : parts) {
    if (failed(returnOnce(part)))
      return failure();
    if (part.function)
      close(part);
  }
  symbols.remove(function);
  for (Part &part : parts)
    if (part.function)
      symbols.insert(part.function);
  return success();
}

/// What a collective takes between the runs: what another block made may be seen under another shape.
void PartSplitter::showOperand(Collective collective, IRMapping &values, OpBuilder &builder) {
  Value value = collective->getOperand(0), shown = shapes.lookup(value);
  if (!values.contains(value))
    values.map(value, graph::ReshapeOp::create(builder, collective.getLoc(), value.getType(),
                                               values.lookup(shown ? shown : graph::storageOf(value))));
}

/// Runs the parts, with the collectives between them.
void PartSplitter::replace(graph::RunOp run) {
  OpBuilder builder(run);
  IRMapping values;
  values.map(function.getArguments(), run.getInputs());
  for (Part &part : parts) {
    if (part.function) {
      auto inputs = llvm::map_to_vector(part.inputs, [&](Value value) { return values.lookup(value); });
      auto own = graph::RunOp::create(builder, run.getLoc(), part.function.getResultTypes(),
                                      part.function.getSymName(), inputs);
      own->setDiscardableAttrs(run->getDiscardableAttrDictionary());
      for (auto [value, result] : llvm::zip_equal(part.results, own.getOutputs()))
        values.map(value, result);
    }
    for (Collective collective : part.collectives) {
      showOperand(collective, values, builder);
      builder.clone(*collective, values);
    }
  }
  for (auto [result, value] :
       llvm::zip_equal(run.getOutputs(), function.front().getTerminator()->getOperands()))
    result.replaceAllUsesWith(values.lookup(value));
  run.erase();
}

LogicalResult dsopt::splitParts(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::MapVector<func::FuncOp, SmallVector<graph::RunOp>> runs;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](graph::RunOp run) {
      auto callee = symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
      if (callee && !callee.isExternal() && !callee.getBody().getOps<Collective>().empty())
        runs[callee].push_back(run);
    });
  for (auto &[function, all] : runs) {
    PartSplitter splitter(function, symbols);
    if (failed(splitter.split()))
      return failure();
    for (graph::RunOp run : all)
      splitter.replace(run);
    func::FuncOp(function).erase();
  }
  return success();
}

namespace {
struct SplitParts : dsopt::impl::SplitPartsBase<SplitParts> {
  void runOnOperation() override {
    if (failed(splitParts(getOperation())))
      signalPassFailure();
  }
};
} // namespace
