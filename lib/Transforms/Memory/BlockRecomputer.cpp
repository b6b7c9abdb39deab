//===- BlockRecomputer.cpp - what one block computes again ----------------===//

#include "BlockRecomputer.h"

#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Interfaces/FlowNetwork.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dsopt;

/// Flops of kernels that a machine does while it moves a byte: those of CPUs and GPUs of the last ten years
/// lie around it.
static constexpr int64_t kFlopsOfByte = 16;
/// Parts of a byte that the network counts in, so that a small cost decides between equal bytes.
static constexpr double kUnits = 256;

SmallVector<BlockRuns> dsopt::collectRuns(func::FuncOp function, SymbolTable &symbols) {
  llvm::MapVector<int64_t, BlockRuns> blocks;
  for (auto run : function.getBody().getOps<graph::RunOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
    auto number = callee->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    auto stage = callee->getAttrOfType<IntegerAttr>(dist::kStageAttr);
    BlockRuns &block = blocks[number.getInt()];
    block.number = number.getInt();
    block.stage = stage ? stage.getInt() : 0;
    switch (*graph::getPhase(callee)) {
    case Phase::F:
      block.forward = run;
      break;
    case Phase::B:
      block.backward = run;
      break;
    case Phase::W:
      block.weights = run;
      break;
    case Phase::E:
      break;
    }
  }
  SmallVector<BlockRuns> found;
  for (auto &[number, block] : blocks)
    if (block.forward && (block.backward || block.weights))
      found.push_back(block);
  return found;
}

/// Whether nothing keeps its results: they are there whenever they are asked for. Parameters do not change
/// within a step; other states may.
static bool isAlwaysThere(Operation *op, SymbolTable &symbols) {
  auto read = dyn_cast<graph::ReadOp>(op);
  return op->hasTrait<OpTrait::ConstantLike>() ||
         (read && symbols.lookup<graph::ParameterOp>(read.getStateAttr().getAttr()));
}

FailureOr<int64_t> BlockRecomputer::costOf(Operation *op) {
  if (isAlwaysThere(op, symbols) || graph::isReadView(op))
    return 0;
  FailureOr<int64_t> flops = counter.count(op);
  if (failed(flops))
    return failure();
  int64_t bytes = 0;
  for (Value value : op->getOperands())
    bytes += graph::numBytes(value.getType());
  for (Value value : op->getResults())
    bytes += graph::numBytes(value.getType());
  double share = 1; // of the time that a CPU's flops have beside a byte
  if (device) {
    Value made = op->getNumResults() ? op->getResult(0) : op->getOperand(0);
    share = kFlopsOfByte * device->memory /
            device->flopsPerSecond(getElementTypeOrSelf(made.getType()), !isa<graph::KernelOp>(op));
  }
  return int64_t(*flops * share) + kFlopsOfByte * bytes;
}

static bool isOf(Operation *user, const BlockRuns &block) {
  return user == block.backward || user == block.weights;
}
/// Whether a value of the function of runs is there in backward whatever this block chooses.
static bool isKeptAnyway(Value value, const BlockRuns &block, SymbolTable &symbols, bool byOwn) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (auto run = dyn_cast<graph::RunOp>(user)) {
      if (isOf(run, block))
        return byOwn;
      std::optional<Phase> phase =
          graph::getPhase(symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr()));
      return phase == Phase::B || phase == Phase::W;
    }
    return false;
  });
}
static bool isGathered(Value value) { return value.getDefiningOp<dist::GatherOp>() != nullptr; }

/// Whether a value's bytes are no other value's, so that a block can return it.
static bool hasOwnBytes(Value value) {
  return !graph::isReadView(value.getDefiningOp()) &&
         llvm::none_of(value.getUsers(), [](Operation *user) { return graph::isWriteView(user); });
}
FailureOr<BlockRecomputer::Choice> BlockRecomputer::choose(const BlockRuns &block, double rate) {
  graph::RunOp run = block.forward;
  auto function = symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
  Block &body = function.front();
  FlowNetwork network;
  int source = network.addNode(), sink = network.addNode();
  struct Edge {
    int from, to;
    int64_t amount; ///< negative: no cut may take it
  };
  SmallVector<Edge> values, ops;
  llvm::DenseMap<Value, int> nodeOf;
  auto addValue = [&](int from, Value value, int64_t bytes) {
    int node = nodeOf[value] = network.addNode();
    network.addEdge(from, node, bytes < 0 ? FlowNetwork::kUnlimited : int64_t(bytes * kUnits));
    values.push_back({from, node, bytes});
  };
  for (auto [argument, operand] : llvm::zip(body.getArguments(), run.getInputs())) {
    bool isFree = isGathered(operand) || isKeptAnyway(operand, block, symbols, /*byOwn=*/true);
    addValue(source, argument, isFree ? 0 : graph::numBytes(argument.getType()));
  }
  llvm::DenseSet<Value> returned, free; ///< free: under another shape, too
  int64_t kept = 0;                     ///< where nothing runs again
  for (auto [value, result] : llvm::zip(body.getTerminator()->getOperands(), run.getOutputs())) {
    returned.insert(value);
    if (isKeptAnyway(result, block, symbols, /*byOwn=*/false))
      free.insert_range(ArrayRef<Value>{value, graph::storageOf(value)});
    else if (isKeptAnyway(result, block, symbols, /*byOwn=*/true))
      kept += graph::numBytes(value.getType());
  }
  for (Operation &op : body.without_terminator()) {
    int node = network.addNode();
    FailureOr<int64_t> cost = costOf(&op);
    if (failed(cost))
      return failure();
    bool isThere = isAlwaysThere(&op, symbols), runsAgain = isThere || isPure(&op);
    network.addEdge(source, node,
                    runsAgain ? int64_t(std::min(*cost * rate * kUnits, 1e17)) : FlowNetwork::kUnlimited);
    ops.push_back({source, node, runsAgain ? *cost : -1});
    for (Value operand : op.getOperands())
      network.addEdge(nodeOf.lookup(operand), node, FlowNetwork::kUnlimited);
    for (Value value : op.getResults()) {
      bool isKept = !isThere && (returned.contains(value) || hasOwnBytes(value));
      addValue(node, value, !isKept ? -1 : free.contains(value) ? 0 : graph::numBytes(value.getType()));
    }
  }
  for (auto [value, result] : llvm::zip(body.getTerminator()->getOperands(), run.getOutputs()))
    if (llvm::any_of(result.getUsers(), [&](Operation *user) { return isOf(user, block); }))
      network.addEdge(nodeOf.lookup(value), sink, FlowNetwork::kUnlimited);
  llvm::BitVector again = network.sinkSide(source, sink);
  auto isCut = [&](const Edge &edge) { return !again.test(edge.from) && again.test(edge.to); };
  // What is needed can neither be kept nor be made again: all stays as it is.
  if (llvm::any_of(values, [&](const Edge &value) { return isCut(value) && value.amount < 0; }) ||
      llvm::any_of(ops, [&](const Edge &op) { return isCut(op) && op.amount < 0; }))
    return Choice{{}, kept, 0};
  Choice choice;
  for (auto [place, op] : llvm::enumerate(ops))
    if (isCut(op)) {
      choice.again.push_back(place);
      choice.cost += op.amount;
    }
  for (const Edge &value : values)
    if (isCut(value))
      choice.kept += value.amount;
  return choice;
}

namespace {
/// Rewrites the runs of a block, and the functions that they alone run.
class Rewriter {
public:
  Rewriter(BlockRuns &block, SymbolTable &symbols, const llvm::BitVector &again)
      : block(block), symbols(symbols), again(again), forward(functionOf(block.forward)) {
    for (auto [place, op] : llvm::enumerate(forward.front().without_terminator()))
      placeOf[&op] = place;
  }
  void rewrite();

private:
  /// A phase of backward, with what it has of forward's values.
  struct PhaseOf {
    graph::RunOp &run;
    func::FuncOp function;
    IRMapping values;
    std::optional<OpBuilder> builder;
  };
  func::FuncOp functionOf(graph::RunOp run) {
    return run ? symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr()) : func::FuncOp();
  }
  bool runsAgain(Operation *op) const {
    auto place = placeOf.find(op);
    return place != placeOf.end() && again.test(place->second);
  }
  void rewrite(PhaseOf &phase, PhaseOf *earlier);
  Value get(PhaseOf &phase, PhaseOf *earlier, Value value);
  Value find(PhaseOf &phase, PhaseOf *earlier, Value value);
  Value take(PhaseOf &phase, Value outside);
  Value keep(Value value);
  Value gather(graph::RunOp run, Value parameter);

  BlockRuns &block;
  SymbolTable &symbols;
  const llvm::BitVector &again;
  func::FuncOp forward;
  llvm::DenseMap<Operation *, int64_t> placeOf;
};
} // namespace

static void updateType(func::FuncOp function) {
  function.setType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                     function.front().getTerminator()->getOperandTypes()));
}

/// The run with as many results as its function returns; `kept` says which of the present ones stay, in
/// front of new ones.
static graph::RunOp withResults(graph::RunOp run, func::FuncOp function, const llvm::BitVector &kept) {
  OpBuilder builder(run);
  auto replaced = graph::RunOp::create(builder, run.getLoc(), function.getResultTypes(), run.getCallee(),
                                       run.getInputs());
  replaced->setDiscardableAttrs(run->getDiscardableAttrDictionary());
  unsigned next = 0;
  for (OpResult result : run->getResults())
    if (kept.test(result.getResultNumber()))
      result.replaceAllUsesWith(replaced.getOutputs()[next++]);
  run.erase();
  return replaced;
}

/// A further result of the run: what its function has as `value`.
static Value addResult(graph::RunOp &run, func::FuncOp function, Value value) {
  function.front().getTerminator()->insertOperands(run.getNumResults(), value);
  updateType(function);
  run = withResults(run, function, llvm::BitVector(run.getNumResults(), true));
  return run.getOutputs().back();
}

/// Removes results that nobody reads, and what only they need.
static void dropResults(graph::RunOp &run, func::FuncOp function) {
  llvm::BitVector unused(run.getNumResults());
  for (OpResult result : run->getResults())
    if (result.use_empty())
      unused.set(result.getResultNumber());
  function.front().getTerminator()->eraseOperands(unused);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  updateType(function);
  run = withResults(run, function, unused.flip());
}

/// Removes arguments that the function does not read. A gather stays: its release and its other values do.
static void dropArguments(graph::RunOp run, func::FuncOp function) {
  // The function's type does not have those yet that were taken.
  llvm::BitVector unused(function.front().getNumArguments());
  for (BlockArgument argument : function.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
  function.front().eraseArguments(unused);
  run->eraseOperands(unused);
  updateType(function);
}

/// Forward's value as another function's result, known there by the run's; perhaps under another shape.
Value Rewriter::keep(Value value) {
  auto returned = forward.front().getTerminator()->getOperands();
  auto found = llvm::find(returned, value);
  if (found == returned.end())
    found = llvm::find_if(returned, [&](Value other) { return graph::storageOf(other) == value; });
  if (found != returned.end())
    return block.forward.getOutputs()[found - returned.begin()];
  return addResult(block.forward, forward, value);
}

/// A value of the function of runs as an argument of the phase.
Value Rewriter::take(PhaseOf &phase, Value outside) {
  auto inputs = phase.run.getInputs();
  if (auto found = llvm::find(inputs, outside); found != inputs.end())
    return phase.function.getArgument(found - inputs.begin());
  phase.run.getInputsMutable().append(outside);
  return phase.function.front().addArgument(outside.getType(), outside.getLoc());
}

/// The whole parameter in front of another run: of the gather that is there, or of one more.
Value Rewriter::gather(graph::RunOp run, Value parameter) {
  auto there = parameter.getDefiningOp<dist::GatherOp>();
  Attribute name = there.getParameters()[cast<OpResult>(parameter).getResultNumber()];
  dist::GatherOp own;
  for (Value input : run.getInputs())
    if (auto gather = input.getDefiningOp<dist::GatherOp>();
        gather && gather.getBucketAttr() == there.getBucketAttr())
      own = gather;
  if (own)
    if (auto found = llvm::find(own.getParameters(), name); found != own.getParameters().end())
      return own.getValues()[found - own.getParameters().begin()];
  OpBuilder builder(run);
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  if (own) {
    builder.setInsertionPoint(own);
    llvm::append_range(names, own.getParameters());
    llvm::append_range(types, own.getResultTypes());
  }
  names.push_back(name);
  types.push_back(parameter.getType());
  auto gather = dist::GatherOp::create(builder, run.getLoc(), types, there.getBucket(),
                                       builder.getArrayAttr(names), there.getAxes(), there.getWireAttr());
  if (!own) {
    builder.setInsertionPointAfter(run);
    dist::ReleaseOp::create(builder, run.getLoc(), gather.getValues());
    return gather.getValues().back();
  }
  for (auto [before, now] : llvm::zip(own.getValues(), gather.getValues()))
    before.replaceAllUsesWith(now);
  for (Operation *user : gather->getUsers())
    if (auto release = dyn_cast<dist::ReleaseOp>(user)) {
      release->setOperands(gather.getValues());
      break;
    }
  own.erase();
  return gather.getValues().back();
}

/// Forward's value in a phase of backward: made there again, or found. A chain of what is made may be longer
/// than a stack is deep.
Value Rewriter::get(PhaseOf &phase, PhaseOf *earlier, Value value) {
  SmallVector<std::pair<Value, unsigned>> path{{value, 0}}; ///< each with its operands that are there
  while (!path.empty()) {
    auto &[last, ready] = path.back();
    Operation *op = last.getDefiningOp();
    if (ready == 0 && find(phase, earlier, last)) {
      path.pop_back();
    } else if (ready < op->getNumOperands()) {
      Value operand = op->getOperand(ready++);
      path.push_back({operand, 0});
    } else {
      phase.builder->clone(*op, phase.values);
      path.pop_back();
    }
  }
  return phase.values.lookup(value);
}

/// What is there in a phase, is taken from the earlier one that made it, or is kept; null for what is to be
/// made.
Value Rewriter::find(PhaseOf &phase, PhaseOf *earlier, Value value) {
  if (Value known = phase.values.lookupOrNull(value))
    return known;
  auto remember = [&](Value found) {
    phase.values.map(value, found);
    return found;
  };
  Operation *op = value.getDefiningOp();
  if (!op) {
    Value outside = block.forward.getInputs()[cast<BlockArgument>(value).getArgNumber()];
    return remember(take(phase, isGathered(outside) ? gather(phase.run, outside) : outside));
  }
  if (!runsAgain(op) && !isAlwaysThere(op, symbols)) {
    Value kept = take(phase, keep(value));
    if (kept.getType() != value.getType())
      kept = graph::ReshapeOp::create(*phase.builder, value.getLoc(), value.getType(), kept);
    return remember(kept);
  }
  if (earlier && !isAlwaysThere(op, symbols))
    if (Value made = earlier->values.lookupOrNull(value); made && hasOwnBytes(made)) {
      auto returned = earlier->function.front().getTerminator()->getOperands();
      auto found = llvm::find(returned, made);
      return remember(take(phase, found == returned.end()
                                      ? addResult(earlier->run, earlier->function, made)
                                      : earlier->run.getOutputs()[found - returned.begin()]));
    }
  return {};
}

void Rewriter::rewrite(PhaseOf &phase, PhaseOf *earlier) {
  // What it reads of forward now, by where it first does.
  SmallVector<std::pair<Value, Value>> reads; ///< forward's value, the phase's argument
  auto returned = forward.front().getTerminator()->getOperands();
  for (auto [argument, input] : llvm::zip(phase.function.getArguments(), phase.run.getInputs()))
    if (input.getDefiningOp() == block.forward) {
      Value value = returned[cast<OpResult>(input).getResultNumber()];
      if (runsAgain(value.getDefiningOp()))
        reads.push_back({value, argument});
    }
  auto firstUser = [](Value argument) {
    Operation *first = nullptr;
    for (Operation *user : argument.getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    return first;
  };
  llvm::erase_if(reads, [](auto &read) { return read.second.use_empty(); });
  llvm::stable_sort(reads, [&](auto &a, auto &b) {
    return a.second != b.second && firstUser(a.second)->isBeforeInBlock(firstUser(b.second));
  });
  for (auto [value, argument] : reads) {
    phase.builder.emplace(firstUser(argument));
    argument.replaceAllUsesWith(get(phase, earlier, value));
  }
}

void Rewriter::rewrite() {
  std::optional<PhaseOf> backward, weights;
  if (block.backward)
    rewrite(backward.emplace(PhaseOf{block.backward, functionOf(block.backward), {}, {}}), nullptr);
  if (block.weights)
    rewrite(weights.emplace(PhaseOf{block.weights, functionOf(block.weights), {}, {}}),
            backward ? &*backward : nullptr);
  for (auto *phase : {&backward, &weights})
    if (*phase)
      dropArguments((*phase)->run, (*phase)->function);
  dropResults(block.forward, forward);
}

LogicalResult BlockRecomputer::apply(BlockRuns &block, const Choice &choice) {
  if (choice.again.empty())
    return success();
  auto function = symbols.lookup<func::FuncOp>(block.forward.getCalleeAttr().getAttr());
  llvm::BitVector again(llvm::range_size(function.front().without_terminator()));
  for (int64_t place : choice.again)
    again.set(place);
  Rewriter(block, symbols, again).rewrite();
  return success();
}
