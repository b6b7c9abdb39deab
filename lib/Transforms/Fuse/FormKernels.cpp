//===- FormKernels.cpp - operations to kernels ----------------------------===//
//
// Outlines what PlanKernels.cpp grouped, orders the calls, shares functions that
// are equal, and makes one flat kernel for each kind of optimizer.
//
//===----------------------------------------------------------------------===//

#include "PlanKernels.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/EqualFunctions.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <queue>

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_FORMKERNELS
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
/// Elements of the nominal operands of a flat kernel.
constexpr int64_t kNominal = 64;

/// A value that shards share ended a kernel, however many shards a rank has; from here on it is the value.
void dropShared(Block &block) {
  for (auto shared : llvm::make_early_inc_range(block.getOps<dist::SharedOp>())) {
    for (Value shard : shared.getShards())
      shard.replaceAllUsesWith(shared.getValue());
    shared.erase();
  }
}

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using Base::Base;

  void runOnOperation() override {
    symbols.emplace(getOperation());
    builder.emplace(&getContext());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || function->hasAttr(graph::kIterateAttr))
        continue;
      bool updates = false;
      for (Operation &op : function.front()) {
        auto rule = dyn_cast<OptimizerOpInterface>(op);
        if (rule && failed(formUpdate(rule)))
          return signalPassFailure();
        updates |= rule || isa<graph::WriteOp, graph::RunOp>(op);
      }
      if (!updates && failed(formKernels(function.front())))
        return signalPassFailure();
      dropShared(function.front());
    }
  }

private:
  LogicalResult formKernels(Block &block);
  LogicalResult formUpdate(OptimizerOpInterface rule);
  void formLocal(OptimizerOpInterface rule, const std::string &name, graph::UpdateFunctions &functions);
  FlatSymbolRefAttr formFlat(OptimizerOpInterface rule, std::string name, ArrayRef<int64_t> inPlace,
                             function_ref<Operation *(ValueRange)> compute);
  func::FuncOp outline(const PlannedNode &node, ValueRange inputs, ValueRange outputs);
  func::FuncOp share(func::FuncOp function);
  void call(const PlannedNode &node);

  std::optional<SymbolTable> symbols;
  std::optional<OpBuilder> builder;
  EqualFunctions functions; ///< kernels
};

/// Removes what nothing uses.
void removeDead(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// The nodes in an order that respects uses and is as near to the program's as
/// can be; operations with effects but reads keep their order.
std::vector<const PlannedNode *> orderNodes(Block &block, const std::vector<PlannedNode> &nodes) {
  llvm::DenseMap<Operation *, int64_t> position, nodeOf;
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  for (auto [index, node] : llvm::enumerate(nodes))
    for (Operation *op : node.ops)
      nodeOf[op] = index;
  std::vector<int64_t> waits(nodes.size());
  std::vector<SmallVector<int64_t>> next(nodes.size());
  auto edge = [&](int64_t from, int64_t to) {
    if (from != to) {
      next[from].push_back(to);
      ++waits[to];
    }
  };
  Operation *effect = nullptr;
  for (Operation &op : block.without_terminator()) {
    auto it = nodeOf.find(&op);
    if (it == nodeOf.end())
      continue;
    for (Value operand : op.getOperands())
      if (auto producer = nodeOf.find(operand.getDefiningOp()); producer != nodeOf.end())
        edge(producer->second, it->second);
    if (isa<graph::AccumulateOp>(op)) {
      if (effect)
        edge(nodeOf[effect], it->second);
      effect = &op;
    }
  }
  using Entry = std::pair<int64_t, int64_t>; // the last operation's position, the node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  auto push = [&](int64_t node) { ready.push({position[nodes[node].ops.back()], node}); };
  for (size_t node = 0; node < nodes.size(); ++node)
    if (!waits[node])
      push(node);
  std::vector<const PlannedNode *> ordered;
  while (!ready.empty()) {
    int64_t node = ready.top().second;
    ready.pop();
    ordered.push_back(&nodes[node]);
    for (int64_t later : next[node])
      if (!--waits[later])
        push(later);
  }
  return ordered;
}

LogicalResult FormKernels::formKernels(Block &block) {
  removeDead(block);
  auto nodes = planKernels(block, {maxOps, maxPointers});
  if (failed(nodes))
    return failure();
  // All in order first: a call stands where its last operation stands.
  std::vector<const PlannedNode *> ordered = orderNodes(block, *nodes);
  for (const PlannedNode *node : ordered)
    for (Operation *op : node->ops)
      op->moveBefore(block.getTerminator());
  for (const PlannedNode *node : ordered)
    if (node->isKernel)
      call(*node);
  removeDead(block);
  return success();
}

void FormKernels::call(const PlannedNode &node) {
  SmallVector<Value> inputs, outputs;
  collectBoundary(node.ops, inputs, outputs);
  func::FuncOp function = share(outline(node, inputs, outputs));
  Operation *last = node.ops.back();
  builder->setInsertionPointAfter(last);
  auto kernel = graph::KernelOp::create(*builder, last->getLoc(), TypeRange(ValueRange(outputs)),
                                        FlatSymbolRefAttr::get(function), inputs);
  for (StringRef name : {graph::kBlockAttr, graph::kPhaseAttr})
    if (Attribute attr = last->getAttr(name))
      kernel->setAttr(name, attr);
  for (auto [from, to] : llvm::zip_equal(outputs, kernel.getOutputs()))
    from.replaceAllUsesWith(to);
  for (Operation *op : llvm::reverse(node.ops))
    op->erase();
}

/// A function of copies of the node's operations, not yet in the module.
func::FuncOp FormKernels::outline(const PlannedNode &node, ValueRange inputs, ValueRange outputs) {
  Location loc = node.ops.front()->getLoc();
  builder->clearInsertionPoint();
  auto function = func::FuncOp::create(*builder, loc, "kernel",
                                       builder->getFunctionType(TypeRange(inputs), TypeRange(outputs)));
  function.setPrivate();
  function->setAttr(graph::kIterateAttr, graph::IterationAttr::get(&getContext(), node.iterate));
  function->setAttr(graph::kRangeAttr, builder->getDenseI64ArrayAttr(node.range));
  Block *body = function.addEntryBlock();
  builder->setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(inputs, body->getArguments());
  for (Operation *op : node.ops) {
    for (Value operand : op->getOperands())
      if (isSplat(operand) && !mapping.contains(operand))
        builder->clone(*operand.getDefiningOp(), mapping);
    builder->clone(*op, mapping);
  }
  for (Operation &op : *body) {
    op.removeDiscardableAttr(graph::kBlockAttr);
    op.removeDiscardableAttr(graph::kPhaseAttr);
  }
  SmallVector<Value> results;
  for (Value output : outputs)
    results.push_back(mapping.lookup(output));
  func::ReturnOp::create(*builder, loc, results);
  return function;
}

/// The function there is that equals this one, or this one under a name of its own.
func::FuncOp FormKernels::share(func::FuncOp function) {
  func::FuncOp known = functions.findOrInsert(function, function->getDiscardableAttrDictionary());
  if (known != function) {
    function.erase();
    return known;
  }
  for (int64_t number = functions.size() - 1;; ++number) {
    std::string name = "kernel" + std::to_string(number);
    if (!symbols->lookup(name)) {
      function.setName(name);
      break;
    }
  }
  symbols->insert(function);
  return function;
}

/// The operands of an update in the order in which its kernel takes them.
SmallVector<unsigned> orderOperands(OptimizerOpInterface rule) {
  SmallVector<unsigned> order;
  for (UpdateRole role :
       {UpdateRole::Parameter, UpdateRole::Gradient, UpdateRole::State, UpdateRole::Scalars})
    for (unsigned operand = 0; operand < rule->getNumOperands(); ++operand)
      if (rule.getRole(operand) == role)
        order.push_back(operand);
  return order;
}

/// A flat kernel with all operands of the rule, in its kernels' order; its results are those of what
/// `compute` builds, each in the place of an argument. Made if it is new.
FlatSymbolRefAttr FormKernels::formFlat(OptimizerOpInterface rule, std::string name,
                                        ArrayRef<int64_t> inPlace,
                                        function_ref<Operation *(ValueRange)> compute) {
  SmallVector<Type> inputs, results;
  for (unsigned operand : orderOperands(rule)) {
    Type type = rule->getOperand(operand).getType();
    bool isTable = rule.getRole(operand) == UpdateRole::Scalars;
    inputs.push_back(
        isTable ? type : RankedTensorType::get(kNominal, cast<RankedTensorType>(type).getElementType()));
  }
  for (int64_t argument : inPlace)
    results.push_back(inputs[argument]);
  FunctionType type = builder->getFunctionType(inputs, results);
  // One kernel for each combination of element types.
  graph::makeWay(*symbols, name);
  auto known = symbols->lookup<func::FuncOp>(name);
  while (known && known.getFunctionType() != type) {
    llvm::raw_string_ostream(name) << "." << cast<RankedTensorType>(results.front()).getElementType();
    graph::makeWay(*symbols, name);
    known = symbols->lookup<func::FuncOp>(name);
  }
  if (!known) {
    builder->clearInsertionPoint();
    auto function = func::FuncOp::create(*builder, rule->getLoc(), name, type);
    function.setPrivate();
    function->setAttr(graph::kIterateAttr, graph::IterationAttr::get(&getContext(), graph::Iteration::Flat));
    function->setAttr(graph::kRangeAttr, builder->getDenseI64ArrayAttr({kNominal}));
    function->setAttr(graph::kInPlaceAttr, builder->getDenseI64ArrayAttr(inPlace));
    Block *body = function.addEntryBlock();
    builder->setInsertionPointToStart(body);
    Operation *computed = compute(body->getArguments());
    func::ReturnOp::create(*builder, rule->getLoc(), computed->getResults().take_back(inPlace.size()));
    symbols->insert(function);
  }
  return FlatSymbolRefAttr::get(&getContext(), name);
}

/// Kernels of steps by which ranks move apart, and meet: the momentum is the first state, the way from the
/// common point, which the master is, the last one.
void FormKernels::formLocal(OptimizerOpInterface rule, const std::string &name,
                            graph::UpdateFunctions &functions) {
  auto local = [&](ValueRange operands) { return rule.buildLocal(*builder, operands); };
  auto join = [&](ValueRange operands) { return rule.buildJoin(*builder, operands); };
  int64_t momentum = kFirstUpdateState, way = rule->getNumOperands() - 2;
  auto apart = [&](StringRef suffix, auto compute) {
    FlatSymbolRefAttr kernel =
        formFlat(rule, (name + suffix).str(), {kUpdatedParameter, momentum, way}, compute);
    symbols->lookup(kernel.getAttr())->setAttr(graph::kOffsetAttr, builder->getI64IntegerAttr(2));
    return kernel;
  };
  functions.local = apart(".local", local);
  functions.join = apart(".join", join);
  functions.localDirection = formFlat(rule, name + ".local.direction", {momentum, way}, local);
}

/// Names the flat kernels of an optimizer's operation.
LogicalResult FormKernels::formUpdate(OptimizerOpInterface rule) {
  std::string name = ("update." + rule.getRuleName()).str();
  SmallVector<unsigned> order = orderOperands(rule);
  auto frozen = [&](ValueRange operands) { return rule.buildFrozen(*builder, operands); };
  bool seesMatrices = rule.getScope() == UpdateScope::Matrices || rule.getScope() == UpdateScope::Tensors;
  graph::UpdateFunctions functions = graph::getFunctions(rule);
  if (seesMatrices && !functions.matrix)
    return rule->emitOpError("needs ") << describe(rule.getScope()) << " and names no function of one, "
                                       << "expected build-matrix-updates to have run";
  if (seesMatrices || rule.getScope() == UpdateScope::Parameters) {
    auto direct = [&](ValueRange operands) { return rule.buildDirection(*builder, operands); };
    auto step = [&](ValueRange operands) {
      return rule.buildStep(*builder,
                            {operands[kUpdatedParameter], operands[kUpdateGradient], operands.back()});
    };
    // A direction stands where the gradient was.
    SmallVector<int64_t> changed = llvm::to_vector(llvm::seq<int64_t>(kUpdateGradient, order.size() - 1));
    functions.direction = formFlat(rule, name + ".direction", changed, direct);
    functions.kernel = formFlat(rule, name, {kUpdatedParameter}, step);
    if (rule.freezes())
      functions.frozen = formFlat(rule, name + ".frozen", {kUpdateGradient}, frozen);
    graph::setFunctions(rule, functions);
    return success();
  }
  SmallVector<int64_t> inPlace;
  for (unsigned result = 0; result < rule->getNumResults(); ++result)
    inPlace.push_back(llvm::find(order, rule.getReplaced(result)) - order.begin());
  auto copy = [&](ValueRange arguments) {
    Operation *copy = rule->cloneWithoutRegions();
    for (auto [argument, operand] : llvm::zip_equal(arguments, order))
      copy->setOperand(operand, argument);
    copy->setDiscardableAttrs(DictionaryAttr::get(&getContext()));
    for (auto [result, argument] : llvm::zip_equal(copy->getResults(), inPlace))
      result.setType(arguments[argument].getType());
    return builder->insert(copy);
  };
  functions.kernel = formFlat(rule, name, inPlace, copy);
  if (rule.freezes())
    functions.frozen = formFlat(rule, name + ".frozen", {kUpdatedParameter}, frozen);
  if (rule.movesApart())
    formLocal(rule, name, functions);
  graph::setFunctions(rule, functions);
  return success();
}
} // namespace
} // namespace dsopt
