//===- FormBlocks.cpp - outline each phase of each block ------------------===//

#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace dsopt {
#define GEN_PASS_DEF_FORMBLOCKS
#include "dsopt/Transforms/Fuse/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {

/// One phase of one block and its function under construction.
struct Group {
  int64_t block = 0;
  Phase phase = Phase::F;
  SmallVector<Operation *> ops;
  func::FuncOp function;
  /// Values of the whole: what the function takes, what it returns.
  SmallVector<Value> inputs;
  llvm::SetVector<Value> results;
  /// From values of the whole to values of the function.
  IRMapping values;
};

/// Outlines @micro_batch or @evaluate.
class BlockFormer {
public:
  BlockFormer(ModuleOp module, func::FuncOp whole)
      : module(module), whole(whole), terminator(whole.front().getTerminator()) {}

  LogicalResult run() {
    if (failed(collect()))
      return failure();
    OpBuilder builder(whole);
    SymbolTable symbols(module);
    for (auto &[rank, group] : groups) {
      std::string name = ("block" + Twine(group.block) + "." + stringifyPhase(group.phase)).str();
      graph::makeWay(symbols, name);
      if (symbols.lookup(name))
        return module.emitError("function @") << name << " exists already";
      group.function = func::FuncOp::create(builder, whole.getLoc(), name, builder.getFunctionType({}, {}));
      group.function.setPrivate();
      group.function->setAttr(graph::kBlockAttr, builder.getI64IntegerAttr(group.block));
      group.function->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(module.getContext(), group.phase));
      if (failed(fill(group)))
        return failure();
    }
    if (failed(returnLoss()))
      return failure();
    for (auto &[rank, group] : groups)
      close(group);
    replaceByRuns();
    return success();
  }

private:
  /// Sorts the operations into groups, which are in the order of their runs.
  LogicalResult collect() {
    int64_t index = 0;
    for (Operation &op : whole.front().without_terminator()) {
      order[&op] = index++;
      if (graph::isReadView(&op) || graph::isMadeInPlace(&op))
        continue;
      auto block = op.getAttrOfType<IntegerAttr>(graph::kBlockAttr);
      std::optional<Phase> phase = graph::getPhase(&op);
      if (!block || block.getInt() < 0 || !phase)
        return op.emitError("has no block and phase, expected both from build-backward or build-evaluation");
      // F and E ascending, then B and W of each block descending.
      bool ascends = phase == Phase::F || phase == Phase::E;
      std::pair<int, int64_t> rank = {!ascends, block.getInt()};
      if (!ascends)
        rank.second = -2 * block.getInt() + (phase == Phase::W);
      Group &group = groups[rank];
      group.block = block.getInt();
      group.phase = *phase;
      group.ops.push_back(&op);
      owner[&op] = &group;
    }
    return success();
  }

  /// Clones the group's operations and what they need into its function.
  LogicalResult fill(Group &group) {
    Block &body = *group.function.addEntryBlock();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    for (Operation *op : group.ops) {
      for (Value operand : op->getOperands())
        if (failed(require(group, operand, op, builder)))
          return failure();
      cloneInto(group, op, builder);
    }
    done.insert(&group);
    return success();
  }

  Operation *cloneInto(Group &group, Operation *op, OpBuilder &builder) {
    Operation *copy = builder.clone(*op, group.values);
    copy->removeAttr(graph::kBlockAttr);
    copy->removeAttr(graph::kPhaseAttr);
    return copy;
  }

  /// Makes a value of the whole available in the group's function.
  LogicalResult require(Group &group, Value value, Operation *user, OpBuilder &builder) {
    if (group.values.contains(value))
      return success();
    Operation *op = value.getDefiningOp();
    if (graph::isMadeInPlace(op)) {
      cloneInto(group, op, builder);
      return success();
    }
    if (graph::isReadView(op)) {
      Value source = op->getOperand(0);
      while (isa<graph::ReshapeOp>(op) && graph::isReadView(source.getDefiningOp<graph::ReshapeOp>()))
        source = source.getDefiningOp()->getOperand(0);
      if (failed(require(group, source, user, builder)))
        return failure();
      if (!isa<graph::ReshapeOp>(op)) {
        cloneInto(group, op, builder);
        return success();
      }
      Value bytes = group.values.lookup(source);
      group.values.map(
          value, bytes.getType() == value.getType()
                     ? bytes
                     : graph::ReshapeOp::create(builder, value.getLoc(), value.getType(), bytes).getResult());
      return success();
    }
    if (op) {
      Group *producer = owner.lookup(op);
      if (!done.contains(producer)) {
        InFlightDiagnostic diag = user->emitError("in block ")
                                  << group.block << " phase " << stringifyPhase(group.phase)
                                  << " uses a value of block " << producer->block << " phase "
                                  << stringifyPhase(producer->phase) << ", which runs later";
        diag.attachNote(op->getLoc()) << "it is made here";
        return diag;
      }
      producer->results.insert(value);
    }
    group.inputs.push_back(value);
    group.values.map(value, group.function.front().addArgument(value.getType(), value.getLoc()));
    return success();
  }

  LogicalResult returnLoss() {
    for (OpOperand &operand : terminator->getOpOperands()) {
      Value source = graph::storageOf(operand.get());
      Group *producer = owner.lookup(source.getDefiningOp());
      if (!producer)
        return whole.emitError("returns what no block computes");
      producer->results.insert(source);
      operand.set(source);
    }
    whole.setType(
        FunctionType::get(module.getContext(), whole.getArgumentTypes(), terminator->getOperandTypes()));
    return success();
  }

  /// Gives the function its results and its type.
  void close(Group &group) {
    auto results = group.results.takeVector();
    llvm::sort(results, [&](Value a, Value b) {
      auto key = [&](Value value) {
        return std::make_pair(order.lookup(value.getDefiningOp()), cast<OpResult>(value).getResultNumber());
      };
      return key(a) < key(b);
    });
    group.results.insert(results.begin(), results.end());
    Block &body = group.function.front();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    auto returned = llvm::map_to_vector(results, [&](Value value) { return group.values.lookup(value); });
    func::ReturnOp::create(builder, whole.getLoc(), returned);
    group.function.setType(builder.getFunctionType(body.getArgumentTypes(), ValueRange(returned).getTypes()));
  }

  /// Leaves the whole with nothing but its runs.
  void replaceByRuns() {
    OpBuilder builder(terminator);
    IRMapping values;
    for (auto &[rank, group] : groups) {
      auto inputs =
          llvm::map_to_vector(group.inputs, [&](Value value) { return values.lookupOrDefault(value); });
      auto run = graph::RunOp::create(builder, whole.getLoc(), group.function.getResultTypes(),
                                      group.function.getSymName(), inputs);
      for (auto [value, result] : llvm::zip(group.results, run.getOutputs()))
        values.map(value, result);
    }
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(values.lookup(operand.get()));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(whole.front())))
      if (order.contains(&op))
        op.erase();
  }

  ModuleOp module;
  func::FuncOp whole;
  Operation *terminator;
  std::map<std::pair<int, int64_t>, Group> groups;
  DenseMap<Operation *, Group *> owner;
  DenseMap<Operation *, int64_t> order;
  DenseSet<Group *> done;
};

struct FormBlocks : public dsopt::impl::FormBlocksBase<FormBlocks> {
  using FormBlocksBase::FormBlocksBase;
  void runOnOperation() override {
    bool any = false;
    for (StringRef name : {graph::kMicroBatchFunction, graph::kEvaluateFunction}) {
      auto function = getOperation().lookupSymbol<func::FuncOp>(name);
      if (!function || !function.getBody().hasOneBlock())
        continue;
      any = true;
      if (failed(BlockFormer(getOperation(), function).run()))
        return signalPassFailure();
    }
    if (any)
      return;
    getOperation().emitError("form-blocks expects a function @micro_batch or @evaluate with one body");
    signalPassFailure();
  }
};

} // namespace
