//===- BuildMatrixUpdates.cpp - what updates compute of whole matrices ----===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_BUILDMATRIXUPDATES
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct BuildMatrixUpdates : public dsopt::impl::BuildMatrixUpdatesBase<BuildMatrixUpdates> {
  void runOnOperation() override {
    auto update = getOperation().lookupSymbol<func::FuncOp>(graph::kUpdateFunction);
    if (!update)
      return;
    symbols.emplace(getOperation());
    for (Operation &op : update.front()) {
      auto rule = dyn_cast<OptimizerOpInterface>(op);
      if (!rule || (rule.getScope() != UpdateScope::Matrices && rule.getScope() != UpdateScope::Tensors))
        continue;
      FailureOr<func::FuncOp> function = functionOf(rule, update);
      if (failed(function))
        return signalPassFailure();
      graph::UpdateFunctions functions;
      functions.matrix = FlatSymbolRefAttr::get(*function);
      graph::setFunctions(&op, functions);
    }
  }

  /// One for each rule with its attributes and each shape.
  FailureOr<func::FuncOp> functionOf(OptimizerOpInterface rule, func::FuncOp update) {
    auto type = cast<RankedTensorType>(rule->getOperand(0).getType());
    if (rule.getScope() == UpdateScope::Matrices && type.getRank() != 2)
      return rule->emitOpError("sees whole matrices, but its parameter is ") << type;
    func::FuncOp &function =
        functions[{rule->getName().getAsOpaquePointer(), type, rule->getAttrDictionary()}];
    if (function)
      return function;
    std::string name = (rule.getRuleName() + ".").str();
    llvm::raw_string_ostream stream(name);
    llvm::interleave(type.getShape(), stream, "x");
    std::string unique = name;
    for (int64_t number = 1; symbols->lookup(unique); ++number)
      unique = name + "." + std::to_string(number);
    OpBuilder builder(update);
    SmallVector<WholeState> states = rule.getWholeStates();
    SmallVector<Type> inputs{type}, results{type};
    if (!states.empty())
      inputs.push_back(rule->getOperands().back().getType());
    for (const WholeState &state : states) {
      inputs.push_back(state.type);
      results.push_back(state.type);
    }
    function =
        func::FuncOp::create(builder, rule->getLoc(), unique, builder.getFunctionType(inputs, results));
    for (auto [index, state] : llvm::enumerate(states))
      function.setArgAttr(index + 2, graph::kWholeStateAttr, builder.getStringAttr(state.role));
    function.setPrivate();
    function->setAttr(graph::kMatrixUpdateAttr, builder.getUnitAttr());
    symbols->insert(function, Block::iterator(update));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    SmallVector<Value> made = rule.buildMatrix(builder, body->getArguments());
    if (TypeRange(ValueRange(made)) != TypeRange(results))
      return rule->emitOpError("sees ")
             << describe(rule.getScope()) << " and makes no " << type << " of its direction";
    func::ReturnOp::create(builder, rule->getLoc(), made);
    return function;
  }

  std::optional<SymbolTable> symbols;
  DenseMap<std::tuple<const void *, Type, Attribute>, func::FuncOp> functions;
};
} // namespace
