//===- BuildBackward.cpp - append the gradient of every parameter ---------===//
//
// Reverse mode over DifferentiableOpInterface, block by block from the last one.
//
//===----------------------------------------------------------------------===//

#include "Branches.h"
#include "Origins.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {

int64_t blockOf(Operation *op) { return op->getAttrOfType<IntegerAttr>(graph::kBlockAttr).getInt(); }

/// Backward of one function.
class BackwardBuilder {
public:
  BackwardBuilder(ModuleOp module, func::FuncOp function)
      : module(module), function(function), symbols(module), terminator(function.front().getTerminator()),
        builder(terminator), lastForward(terminator->getPrevNode()) {}

  LogicalResult run() {
    if (failed(checkInput()) || failed(findActive()))
      return failure();
    for (Operation &op : function.front().without_terminator())
      op.setAttr(graph::kPhaseAttr, phase(Phase::F));
    findBranches();
    if (failed(seedLoss()) || failed(differentiate()))
      return failure();
    accumulateNothing();
    removeUnused();
    tagPhases();
    localize();
    declareStates();
    freezeUnreached();
    return success();
  }

private:
  LogicalResult checkInput() {
    for (Operation &op : function.front().without_terminator())
      if (!op.getAttrOfType<IntegerAttr>(graph::kBlockAttr))
        return op.emitError("has no ") << graph::kBlockAttr << ", expected one from find-blocks";
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    if (terminator->getNumOperands() !=
            1 + graph::statisticsOf(function).size() + graph::metricsOf(function).size() ||
        terminator->getOperand(0).getType() != scalar)
      return function.emitError("returns ")
             << function.getResultTypes() << ", expected one loss of type " << scalar;
    return success();
  }

  /// The trainable parameter that an operation reads, null if there is none.
  graph::ParameterOp trainable(Operation *op) {
    auto read = dyn_cast_or_null<graph::ReadOp>(op);
    auto parameter =
        read ? symbols.lookup<graph::ParameterOp>(read.getStateAttr().getAttr()) : graph::ParameterOp();
    return parameter && !parameter.getFrozen() ? parameter : graph::ParameterOp();
  }

  /// Whether a trainable parameter's gradient comes through this operand.
  bool isActive(OpOperand &operand) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(operand.getOwner());
    return active.contains(operand.get()) &&
           (!differentiable || differentiable.passesGradient(operand.getOperandNumber()));
  }

  /// Values whose gradient a trainable parameter needs.
  LogicalResult findActive() {
    for (Operation &op : function.front().without_terminator())
      if (trainable(&op) ||
          llvm::any_of(op.getOpOperands(), [&](OpOperand &operand) { return isActive(operand); }))
        for (Value result : op.getResults())
          if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
            active.insert(result);
    if (active.contains(terminator->getOperand(0)))
      return success();
    return function.emitError("the loss depends on no trained parameter: -list-parameters says which are not "
                              "trained, and why");
  }

  /// Parameters that are read inside of branches alone.
  void findBranches() {
    branches.emplace(function, [&](OpOperand &operand) { return isActive(operand); });
    if (!branches->any())
      return;
    for (auto read : function.getOps<graph::ReadOp>())
      if (trainable(read)) {
        Branches::Condition &whole =
            reached.try_emplace(read.getStateAttr().getAttr(), Branches::kNever).first->second;
        whole = branches->either(whole, branches->reaches(read));
      }
    for (auto parameter : module.getOps<graph::ParameterOp>())
      if (isInBranch(parameter.getSymNameAttr()))
        parameter.setBranch(true);
    module.walk([](graph::WhereOp where) { where.setBranch(false); });
  }

  bool isInBranch(StringAttr parameter) const {
    auto found = reached.find(parameter);
    return found != reached.end() && found->second != Branches::kAlways && found->second != Branches::kNever;
  }

  /// What goes from an operation to one of its operands, where the operation is in a branch and the operand
  /// is not: nothing of a side that is not taken, whatever it is.
  Value selectTaken(Operation *op, Value operand, Value gradient) {
    Operation *source = operand.getDefiningOp();
    if (!branches->any() || !source)
      return gradient;
    Branches::Condition inner = branches->reaches(op), outer = branches->reaches(source);
    if (inner == outer || branches->either(inner, outer) != outer)
      return gradient;
    Value taken = branches->build(builder, op->getLoc(), inner);
    return graph::WhereOp::create(builder, op->getLoc(), taken, gradient, scalar(0, gradient));
  }

  Value scalar(double value, Value like) {
    auto type = RankedTensorType::get({}, getElementTypeOrSelf(like.getType()));
    return graph::ConstantOp::create(
        builder, like.getLoc(),
        cast<ElementsAttr>(DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value))));
  }

  /// A parameter's gradient where a branch reaches it, in which no -0 is; -0 everywhere else, whose sums are
  /// -0.
  Value markUnreached(Location loc, Value gradient, Branches::Condition condition) {
    Value zero = scalar(0, gradient);
    Value isZero = graph::EqualOp::create(builder, loc, gradient, zero);
    return graph::WhereOp::create(builder, loc, branches->build(builder, loc, condition),
                                  graph::WhereOp::create(builder, loc, isZero, zero, gradient),
                                  scalar(-0.0, gradient));
  }

  LogicalResult seedLoss() {
    Value loss = terminator->getOperand(0);
    auto name =
        builder.getDictionaryAttr({builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr("seed")),
                                   builder.getNamedAttr(graph::kSeedAttr, builder.getUnitAttr())});
    unsigned position = function.getNumArguments();
    if (failed(function.insertArgument(position, loss.getType(), name, function.getLoc())))
      return failure();
    graph::makeWay(symbols, graph::kMicroBatchFunction);
    function.setName(graph::kMicroBatchFunction);
    gradients[loss] = function.getArgument(position);
    return success();
  }

  LogicalResult differentiate() {
    SmallVector<Operation *> forward;
    for (Operation &op : function.front().without_terminator())
      forward.push_back(&op);
    int64_t block = forward.empty() ? 0 : blockOf(forward.back());
    for (Operation *op : llvm::reverse(forward)) {
      if (blockOf(op) != block) {
        accumulate(block);
        block = blockOf(op);
      }
      if (failed(differentiate(op)))
        return failure();
      tagBlock(block);
    }
    accumulate(block);
    return success();
  }

  LogicalResult differentiate(Operation *op) {
    auto resultGrads =
        llvm::map_to_vector(op->getResults(), [&](Value result) { return gradients.lookup(result); });
    if (llvm::none_of(resultGrads, [](Value gradient) { return !!gradient; }))
      return success();
    if (trainable(op)) {
      uses.push_back({cast<graph::ReadOp>(op), resultGrads[0]});
      return success();
    }
    auto needed =
        llvm::map_to_vector(op->getOpOperands(), [&](OpOperand &operand) { return isActive(operand); });
    if (!llvm::is_contained(needed, true))
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitError("operation '")
             << op->getName() << "' has no gradient, needed for parameter @" << parameterBehind(op);
    SmallVector<Value> operandGrads(op->getNumOperands());
    if (failed(differentiable.buildGradient(builder, resultGrads, needed, operandGrads)))
      return failure();
    for (auto [operand, need, gradient] : llvm::zip(op->getOperands(), needed, operandGrads))
      if (need && gradient) {
        gradient = selectTaken(op, operand, gradient);
        Value &sum = gradients[operand];
        sum = sum ? graph::AddOp::create(builder, op->getLoc(), sum, gradient) : gradient;
      }
    return success();
  }

  /// A trainable parameter that the operation depends on.
  StringRef parameterBehind(Operation *op) {
    while (!trainable(op)) {
      auto reaches = [&](OpOperand &operand) { return isActive(operand); };
      op = llvm::find_if(op->getOpOperands(), reaches)->get().getDefiningOp();
    }
    return trainable(op).getModelName();
  }

  /// Adds what the block's uses of each parameter contribute, in graph order.
  void accumulate(int64_t block) {
    llvm::MapVector<StringAttr, SmallVector<Value>> contributions;
    llvm::DenseMap<StringAttr, Location> locations;
    llvm::DenseMap<StringAttr, Branches::Condition> conditions;
    for (auto &[read, gradient] : llvm::reverse(uses)) {
      Branches::Condition &condition =
          conditions.try_emplace(read.getStateAttr().getAttr(), Branches::kNever).first->second;
      condition = branches->either(condition, branches->reaches(read));
      contributions[read.getStateAttr().getAttr()].push_back(gradient);
      locations.try_emplace(read.getStateAttr().getAttr(), read.getLoc());
    }
    uses.clear();
    for (auto &[parameter, values] : contributions) {
      Location loc = locations.at(parameter);
      Value sum = values[0];
      for (Value value : ArrayRef<Value>(values).drop_front())
        sum = graph::AddOp::create(builder, loc, sum, value);
      auto type = accumulatorType(cast<RankedTensorType>(sum.getType()));
      if (type != sum.getType())
        sum = graph::CastOp::create(builder, loc, type, sum);
      if (isInBranch(parameter))
        sum = markUnreached(loc, sum, conditions.lookup(parameter));
      std::string state = graph::freeSymbol(symbols, parameter.getValue() + ".grad." + Twine(block));
      graph::AccumulateOp::create(builder, loc, SymbolRefAttr::get(builder.getContext(), state), sum);
      states[parameter].push_back({state, type, block});
    }
    tagBlock(block);
  }

  /// Where a block reads a parameter whose gradient comes from others alone (its own is stopped), its
  /// accumulator holds zeros.
  void accumulateNothing() {
    for (Operation &op : function.front().without_terminator()) {
      if (&op == lastForward->getNextNode())
        break;
      graph::ParameterOp parameter = trainable(&op);
      auto found = parameter ? states.find(parameter.getSymNameAttr()) : states.end();
      if (found == states.end())
        continue;
      auto mine = [&](const State &state) { return state.block == blockOf(&op); };
      if (llvm::any_of(found->second, mine))
        continue;
      auto type = accumulatorType(cast<RankedTensorType>(op.getResult(0).getType()));
      double zero = isInBranch(parameter.getSymNameAttr()) ? -0.0 : 0.0;
      ElementsAttr zeros = DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), zero));
      std::string state = graph::freeSymbol(symbols, parameter.getSymName() + ".grad." + Twine(blockOf(&op)));
      graph::AccumulateOp::create(builder, op.getLoc(), SymbolRefAttr::get(builder.getContext(), state),
                                  graph::ConstantOp::create(builder, op.getLoc(), zeros));
      tagBlock(blockOf(&op));
      found->second.push_back({state, type, blockOf(&op)});
      llvm::sort(found->second, [](const State &a, const State &b) { return a.block > b.block; });
    }
  }

  RankedTensorType accumulatorType(RankedTensorType type) {
    if (type.getElementTypeBitWidth() >= 32 || options::gradient_type(module) == "param")
      return type;
    return RankedTensorType::get(type.getShape(), builder.getF32Type());
  }

  /// Tags the operations appended since the last call.
  void tagBlock(int64_t block) {
    for (Operation *op = terminator->getPrevNode(); op && op != lastTagged && op != lastForward;
         op = op->getPrevNode())
      op->setAttr(graph::kBlockAttr, builder.getI64IntegerAttr(block));
    lastTagged = terminator->getPrevNode();
  }

  /// The appended operations, in order.
  graph::PhaseAttr phase(Phase which) { return graph::PhaseAttr::get(builder.getContext(), which); }

  SmallVector<Operation *> backward() {
    SmallVector<Operation *> ops;
    for (Operation *op = lastForward->getNextNode(); op != terminator; op = op->getNextNode())
      ops.push_back(op);
    return ops;
  }

  void removeUnused() {
    SmallVector<Operation *> ops = backward();
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

  void tagPhases() {
    Attribute b = phase(Phase::B), w = phase(Phase::W);
    SmallVector<Operation *> ops = backward();
    for (Operation *op : llvm::reverse(ops)) {
      bool leaves = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return blockOf(user) != blockOf(op) || user->getAttr(graph::kPhaseAttr) == b;
      });
      op->setAttr(graph::kPhaseAttr, leaves ? b : w);
    }
  }

  /// Constants, predicates and what floats in forward are made anew where
  /// backward uses them.
  void localize() {
    Origins origins(function);
    llvm::DenseSet<Operation *> floating;
    for (Operation &op : function.front().without_terminator())
      if (op.hasTrait<OpTrait::ConstantLike>() || (graph::getPhase(&op) == Phase::F && origins.floats(&op)))
        floating.insert(&op);
    addPredicates(floating, origins);
    Rematerializer rematerializer([&](Operation *op) { return floating.contains(op); });
    SmallVector<Operation *> ops = backward();
    for (Operation *op : ops) {
      if (floating.contains(op))
        continue;
      Attribute block = op->getAttr(graph::kBlockAttr), phase = op->getAttr(graph::kPhaseAttr);
      int64_t place = blockOf(op) * 2 + (graph::getPhase(op) == Phase::W);
      rematerializer.localize(op, place, /*readPerUse=*/false, [&](Operation *copy) {
        copy->setAttr(graph::kBlockAttr, block);
        copy->setAttr(graph::kPhaseAttr, phase);
      });
    }
    for (Operation *op : llvm::reverse(ops))
      if (floating.contains(op))
        op->erase();
  }

  /// A bool made from values that its block's backward reads anyway floats too.
  void addPredicates(llvm::DenseSet<Operation *> &floating, const Origins &origins) {
    llvm::DenseSet<std::pair<Value, int64_t>> kept;
    for (Operation *op : backward())
      for (Value operand : op->getOperands())
        kept.insert({operand, blockOf(op)});
    for (Operation &op : function.front().without_terminator()) {
      if (&op == lastForward->getNextNode())
        break;
      if (op.getNumResults() != 1 || !getElementTypeOrSelf(op.getResult(0).getType()).isInteger(1) ||
          !isMemoryEffectFree(&op))
        continue;
      if (llvm::all_of(op.getOperands(), [&](Value operand) {
            Operation *source = operand.getDefiningOp();
            bool isBool = getElementTypeOrSelf(operand.getType()).isInteger(1);
            return !source || (floating.contains(source) && !origins.isSum(operand)) ||
                   (!isBool && kept.contains({operand, blockOf(&op)}));
          }))
        floating.insert(&op);
    }
  }

  void declareStates() {
    builder.setInsertionPoint(function);
    for (auto parameter : module.getOps<graph::ParameterOp>()) {
      auto found = states.find(parameter.getSymNameAttr());
      if (found == states.end())
        continue;
      // Backward met the last block first.
      for (const State &state : llvm::reverse(found->second))
        graph::StateOp::create(builder, parameter.getLoc(), state.name, state.type, graph::Role::Gradient,
                               StringAttr(), parameter.getSymName(), builder.getI64IntegerAttr(state.block));
    }
  }

  void freezeUnreached() {
    llvm::DenseSet<StringAttr> wholes = graph::findWholes(module);
    for (auto parameter : module.getOps<graph::ParameterOp>())
      if (StringAttr name = parameter.getSymNameAttr();
          !parameter.getFrozen() && !states.contains(name) && !wholes.contains(name)) {
        parameter.emitWarning("parameter @")
            << parameter.getModelName() << " does not reach the loss; it is kept frozen";
        parameter.setFrozen(true);
        parameter.setWhy("unused");
      }
  }

  struct State {
    std::string name;
    RankedTensorType type;
    int64_t block;
  };

  ModuleOp module;
  func::FuncOp function;
  SymbolTable symbols;
  Operation *terminator;
  OpBuilder builder;
  Operation *lastForward, *lastTagged = nullptr;
  llvm::DenseSet<Value> active;
  std::optional<Branches> branches;
  llvm::DenseMap<StringAttr, Branches::Condition> reached; ///< by parameter
  DenseMap<Value, Value> gradients;
  /// Reads of trainable parameters in the present block, the last one first.
  SmallVector<std::pair<graph::ReadOp, Value>> uses;
  DenseMap<StringAttr, SmallVector<State>> states;
};

struct BuildBackward : public dsopt::impl::BuildBackwardBase<BuildBackward> {
  using BuildBackwardBase::BuildBackwardBase;
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      getOperation().emitError("build-backward expects a function @forward with one body");
      return signalPassFailure();
    }
    if (failed(BackwardBuilder(getOperation(), forward).run()))
      signalPassFailure();
  }
};

} // namespace
