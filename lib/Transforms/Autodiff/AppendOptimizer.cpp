//===- AppendOptimizer.cpp - optimizer state and @update ------------------===//

#include "HiddenMatrices.h"
#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Globs.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/OptimizerRegistry.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/Scalars.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace dsopt {
#define GEN_PASS_DEF_APPENDOPTIMIZER
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {

/// What the options ask for: an operation, by what it answers before there is one, and its attributes.
struct Optimizer {
  OptimizerOpInterface::Concept *rule;
  NamedAttrList attributes;
};

struct AppendOptimizer : public dsopt::impl::AppendOptimizerBase<AppendOptimizer> {
  using AppendOptimizerBase::AppendOptimizerBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    symbols.emplace(module);
    graph::makeWay(*symbols, graph::kUpdateFunction);
    giveOption(module, "optimizer", StringRef(optimizer));
    asked = options::optimizer(module);
    FailureOr<Optimizer> chosen = choose(asked);
    if (failed(chosen) || failed(groupParameters()))
      return signalPassFailure();
    FailureOr<Optimizer> companion = chosen;
    if (StringRef other = chosen->rule->getCompanion(); !other.empty()) {
      companion = choose(other);
      if (failed(companion) || failed(findMatrices()))
        return signalPassFailure();
    }
    bool takesAll = chosen->rule->getCompanion().empty();
    DenseMap<StringAttr, SmallVector<graph::StateOp>> gradients;
    for (auto state : module.getOps<graph::StateOp>())
      if (state.getRole() == graph::Role::Gradient)
        gradients[state.getParameterAttr().getAttr()].push_back(state);
    for (auto &[name, states] : gradients)
      llvm::sort(states, [](graph::StateOp a, graph::StateOp b) { return a.getBlock() < b.getBlock(); });

    auto builder = OpBuilder::atBlockEnd(module.getBody());
    Location loc = module.getLoc();
    auto scalars = RankedTensorType::get({DSOPT_SCALARS}, builder.getF32Type());
    auto update =
        func::FuncOp::create(builder, loc, graph::kUpdateFunction, builder.getFunctionType({scalars}, {}));
    OpBuilder body = OpBuilder::atBlockEnd(update.addEntryBlock());
    builder.setInsertionPoint(update);
    if (Operation *microBatch = module.lookupSymbol(graph::kMicroBatchFunction))
      builder.setInsertionPoint(microBatch);
    llvm::DenseSet<StringAttr> wholes = graph::findWholes(module);
    for (auto parameter : module.getOps<graph::ParameterOp>()) {
      if (parameter.getFrozen() || wholes.contains(parameter.getSymNameAttr()))
        continue;
      auto states = gradients.find(parameter.getSymNameAttr());
      if (states == gradients.end()) {
        parameter.emitError("trainable parameter has no gradient, expected one from build-backward");
        return signalPassFailure();
      }
      auto matrix = matrices.find(graph::seenWhole(parameter));
      Optimizer rule = takesAll || matrix != matrices.end() ? *chosen : *companion;
      if (!takesAll && matrix != matrices.end() && matrix->second.rowsAreInputs)
        rule.attributes.set("rows_are_inputs", builder.getUnitAttr());
      if (failed(append(rule, parameter, states->second, builder, body, update.getArgument(0))))
        return signalPassFailure();
    }
    func::ReturnOp::create(body, loc);
    for (Operation &op : update.front())
      if (auto rule = dyn_cast<OptimizerOpInterface>(op); rule && failed(checkScope(rule)))
        return signalPassFailure();
  }

  /// What a step goes along takes the gradient's place until more of it is known.
  LogicalResult checkScope(OptimizerOpInterface rule) {
    ModuleOp module = getOperation();
    if (rule.getScope() == UpdateScope::Elements)
      return success();
    if (options::precision(module) != "fp32" && options::gradient_type(module) == "param")
      return module.emitError("-optimizer=")
             << rule.getRuleName() << " works in the gradients' place: expected "
             << "-gradient-type=fp32, got param";
    if (rule.getScope() != UpdateScope::Parameters && options::delayed_update(module).value_or(0) != 0)
      return module.emitError("-optimizer=") << rule.getRuleName() << " sees " << describe(rule.getScope())
                                             << ": expected no -delayed-update";
    return success();
  }

  std::optional<SymbolTable> symbols;
  StringRef asked; ///< -optimizer

  llvm::DenseMap<StringAttr, HiddenMatrix> matrices; ///< that a rule of matrices alone updates

  LogicalResult findMatrices() {
    if (auto function = getOperation().lookupSymbol<func::FuncOp>(graph::kMicroBatchFunction))
      matrices = findHiddenMatrices(function);
    for (StringRef glob : options::muon_except(getOperation()))
      if (failed(forMatches("muon-except", glob, [&](graph::ParameterOp parameter) {
            matrices.erase(graph::seenWhole(parameter));
          })))
        return failure();
    return success();
  }

  FailureOr<Optimizer> choose(StringRef name) {
    ModuleOp module = getOperation();
    for (RegisteredOperationName op : getContext().getRegisteredOperations())
      if (auto *rule = op.getInterface<OptimizerOpInterface>())
        if (std::optional<NamedAttrList> attributes = rule->choose(name, module))
          return Optimizer{rule, *attributes};
    return module.emitError("optimizer '") << name << "' is not available, expected one of "
                                           << llvm::join(registeredOptimizers(getContext()), ", ");
  }

  /// Appends one parameter's states and update.
  LogicalResult append(const Optimizer &chosen, graph::ParameterOp parameter,
                       ArrayRef<graph::StateOp> gradients, OpBuilder &declare, OpBuilder &body,
                       Value scalars) {
    Location loc = parameter.getLoc();
    auto type = cast<RankedTensorType>(parameter.getType());
    auto read = [&](Type type, StringRef symbol) -> Value {
      return graph::ReadOp::create(body, loc, type, symbol);
    };
    Value value = read(type, parameter.getSymName());
    Value sum;
    for (graph::StateOp gradient : gradients) {
      Value part = read(gradient.getType(), gradient.getSymName());
      sum = sum ? graph::AddOp::create(body, loc, sum, part) : part;
    }
    auto keep = [&](const OptimizerState &state) {
      auto [role, element] = state;
      auto stateType = RankedTensorType::get(type.getShape(), element);
      std::string name = graph::freeSymbol(*symbols, parameter.getSymName() + "." + role);
      graph::StateOp::create(declare, loc, name, stateType, graph::Role::Optimizer,
                             declare.getStringAttr(role), parameter.getSymName(), IntegerAttr());
      return read(stateType, name);
    };
    SmallVector<Value> states = llvm::map_to_vector(chosen.rule->getStates(type.getElementType()), keep);
    Operation *updated = chosen.rule->buildUpdate(body, loc, value, sum, states, scalars, chosen.attributes);
    if (parameter.getBranch()) {
      auto more = graph::branchStates(updated);
      // What stands beside a rule of matrices goes by a learning rate of its own.
      if (!more || !llvm::is_contained(chosen.rule->getOptimizers(), asked))
        return refuseBranch(parameter, "-optimizer=" + asked, "-optimizer=adamw, adam, sgd, lion or adagrad");
      if (StringRef method = options::compress_gradients(getOperation()); method != "none")
        return refuseBranch(parameter, "-compress-gradients=" + method, "no -compress-gradients");
      Operation *whole = updated;
      body.setInsertionPoint(whole);
      SmallVector<Value> counts = llvm::map_to_vector(*more, keep);
      updated = graph::buildBranchUpdate(body, whole, counts);
      whole->erase();
      body.setInsertionPointToEnd(body.getBlock());
    }
    // Each result goes where what it replaces was read.
    for (OpResult result : updated->getResults()) {
      Value replaced =
          updated->getOperand(cast<OptimizerOpInterface>(updated).getReplaced(result.getResultNumber()));
      graph::WriteOp::create(body, loc, replaced.getDefiningOp<graph::ReadOp>().getState(), result);
    }
    return success();
  }

  LogicalResult refuseBranch(graph::ParameterOp parameter, const Twine &got, StringRef expected) {
    return getOperation().emitError()
           << got << " would update parameter '" << parameter.getModelName()
           << "' in steps that do not reach it, as a draw decides whether it is used: "
           << "expected " << expected;
  }

  /// Sets the factors of learning rate and decay of the parameters that the lists name.
  LogicalResult groupParameters() {
    if (failed(scaleParameters("lr_scale", &graph::ParameterOp::setLrScaleAttr)) ||
        failed(scaleParameters("decay_scale", &graph::ParameterOp::setDecayScaleAttr)))
      return failure();
    Builder builder(&getContext());
    for (StringRef entry : options::no_decay(getOperation())) {
      auto exempt = [&](graph::ParameterOp parameter) {
        parameter.setDecayScaleAttr(builder.getF64FloatAttr(0));
      };
      if (entry == "rank1") {
        for (auto parameter : getOperation().getOps<graph::ParameterOp>())
          if (!parameter.getFrozen() && cast<ShapedType>(parameter.getType()).getRank() <= 1)
            exempt(parameter);
      } else if (failed(forMatches("no-decay", entry, exempt))) {
        return failure();
      }
    }
    return success();
  }

  /// Sets a factor of the parameters that a list of GLOB=X names.
  LogicalResult scaleParameters(StringRef option, void (graph::ParameterOp::*set)(FloatAttr)) {
    Builder builder(&getContext());
    std::string spelled = option.str();
    llvm::replace(spelled, '_', '-');
    for (StringRef entry : getOptionList(getOperation(), option)) {
      // A name may hold '=', a number does not.
      auto [glob, text] = entry.rsplit('=');
      double scale = 0;
      if (glob.empty() || text.getAsDouble(scale) || !(scale >= 0))
        return getOperation().emitError("-")
               << spelled << " got '" << entry << "', expected GLOB=X with a number X >= 0";
      if (failed(forMatches(spelled, glob, [&, scale = scale](graph::ParameterOp parameter) {
            (parameter.*set)(builder.getF64FloatAttr(scale));
          })))
        return failure();
    }
    return success();
  }

  /// A name stands for itself, whatever it would mean as a pattern.
  LogicalResult forMatches(StringRef option, StringRef glob, function_ref<void(graph::ParameterOp)> set) {
    for (auto parameter : getOperation().getOps<graph::ParameterOp>())
      if (parameter.getModelName() == glob) {
        if (!parameter.getFrozen())
          set(parameter);
        return success();
      }
    FailureOr<Glob> pattern = Glob::parse(option, glob, [&] { return getOperation().emitError(); });
    if (failed(pattern))
      return failure();
    bool any = false;
    SmallVector<StringRef> names;
    for (auto parameter : getOperation().getOps<graph::ParameterOp>()) {
      names.push_back(parameter.getModelName());
      if (!pattern->matches(parameter.getModelName()))
        continue;
      any = true;
      if (!parameter.getFrozen())
        set(parameter);
    }
    if (!any)
      return getOperation().emitError("-")
             << option << "=" << glob << " matches no parameter of the model" << nearMatches(glob, names);
    return success();
  }
};

} // namespace
