//===- BuildMatrixUpdates.cpp - what updates compute of whole matrices ----===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_BUILDMATRIXUPDATES
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// Of runs of all shards in turn, how many a shard has.
static int64_t runsOf(RankedTensorType shard, graph::RunsAttr runs) {
  return shard.getNumElements() / runs.getLength();
}

/// The whole of its shards: their runs in turn. What the last one has beyond it is no part of it.
static Value joinShards(OpBuilder &builder, Location loc, ValueRange shards, RankedTensorType whole,
                        graph::RunsAttr runs) {
  auto shard = cast<RankedTensorType>(shards.front().getType());
  int64_t count = runsOf(shard, runs), parts = shards.size(), length = runs.getLength();
  SmallVector<Value> turns;
  for (Value value : shards)
    turns.push_back(graph::ReshapeOp::create(builder, loc, shard.clone({count, length}), value));
  Value joined = graph::ConcatOp::create(builder, loc, shard.clone({count, parts * length}), turns, 1);
  if (count * parts * length > whole.getNumElements()) {
    int64_t size = whole.getNumElements();
    joined = graph::SliceOp::create(builder, loc, shard.clone({1, size}), joined, ArrayRef<int64_t>{0, 0},
                                    ArrayRef<int64_t>{1, size}, ArrayRef<int64_t>{1, 1});
  }
  return graph::ReshapeOp::create(builder, loc, whole, joined);
}

/// The other way round: zeros where the last shard has more.
static SmallVector<Value> cutShards(OpBuilder &builder, Location loc, Value whole, RankedTensorType shard,
                                    graph::RunsAttr runs) {
  int64_t count = runsOf(shard, runs), length = runs.getLength(), parts = runs.getStride() / length;
  int64_t size = cast<RankedTensorType>(whole.getType()).getNumElements();
  int64_t more = count * parts * length - size;
  Value turns =
      graph::ReshapeOp::create(builder, loc, shard.clone({count, more ? size : parts * length}), whole);
  if (more)
    turns =
        graph::PadOp::create(builder, loc, shard.clone({1, parts * length}), turns, ArrayRef<int64_t>{0, 0},
                             ArrayRef<int64_t>{0, more}, FloatAttr::get(shard.getElementType(), 0));
  SmallVector<Value> shards;
  for (int64_t part = 0; part < parts; ++part) {
    Value own = graph::SliceOp::create(builder, loc, shard.clone({count, length}), turns,
                                       ArrayRef<int64_t>{0, part * length}, ArrayRef<int64_t>{count, length},
                                       ArrayRef<int64_t>{1, 1});
    shards.push_back(graph::ReshapeOp::create(builder, loc, shard, own));
  }
  return shards;
}

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

  /// The tensor shard that the rule updates; null where it is no shard.
  graph::ParameterOp shardOf(OptimizerOpInterface rule) {
    auto read = rule->getOperand(0).getDefiningOp<graph::ReadOp>();
    auto parameter = read
                         ? symbols->lookup<graph::ParameterOp>(graph::parameterRead(read, *symbols).getAttr())
                         : graph::ParameterOp();
    return parameter && parameter.getPartRuns() ? parameter : graph::ParameterOp();
  }

  /// One for each rule with its attributes, each shape, and how shards lie in it: these it takes and makes,
  /// in their order in the whole.
  FailureOr<func::FuncOp> functionOf(OptimizerOpInterface rule, func::FuncOp update) {
    graph::ParameterOp shard = shardOf(rule);
    if (shard && rule.getScope() == UpdateScope::Tensors)
      return rule->emitError()
             << rule.getRuleName() << " sees " << describe(rule.getScope()) << ", but @" << *shard.getPartOf()
             << " is cut in tensor shards: expected another optimizer, or -tp=1 and no -tensor-shards";
    auto own = cast<RankedTensorType>(rule->getOperand(0).getType()), type = own;
    if (shard)
      type = own.clone(
          cast<ShapedType>(symbols->lookup<graph::ParameterOp>(*shard.getPartOf()).getType()).getShape());
    graph::RunsAttr runs = shard ? shard.getPartRunsAttr() : nullptr;
    int64_t parts = shard ? runs.getStride() / runs.getLength() : 1;
    if (rule.getScope() == UpdateScope::Matrices && type.getRank() != 2)
      return rule->emitOpError("sees whole matrices, but its parameter is ") << type;
    func::FuncOp &function =
        functions[{rule->getName().getAsOpaquePointer(), type, runs, rule->getAttrDictionary()}];
    if (function)
      return function;
    std::string name = (rule.getRuleName() + ".").str();
    llvm::raw_string_ostream stream(name);
    llvm::interleave(type.getShape(), stream, "x");
    if (shard)
      stream << ".of." << parts;
    std::string unique = name;
    for (int64_t number = 1; symbols->lookup(unique); ++number)
      unique = name + "." + std::to_string(number);
    OpBuilder builder(update);
    SmallVector<WholeState> states = rule.getWholeStates();
    SmallVector<Type> inputs(parts, own), results(parts, own);
    if (!states.empty())
      inputs.push_back(rule->getOperands().back().getType());
    for (const WholeState &state : states) {
      inputs.push_back(state.type);
      results.push_back(state.type);
    }
    function =
        func::FuncOp::create(builder, rule->getLoc(), unique, builder.getFunctionType(inputs, results));
    for (auto [index, state] : llvm::enumerate(states))
      function.setArgAttr(parts + 1 + index, graph::kWholeStateAttr, builder.getStringAttr(state.role));
    function.setPrivate();
    function->setAttr(graph::kMatrixUpdateAttr, builder.getUnitAttr());
    symbols->insert(function, Block::iterator(update));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    SmallVector<Value> operands(body->getArguments());
    if (shard) {
      Value joined = joinShards(builder, rule->getLoc(), ValueRange(operands).take_front(parts), type, runs);
      operands.erase(operands.begin(), operands.begin() + parts);
      operands.insert(operands.begin(), joined);
    }
    SmallVector<Value> made = rule.buildMatrix(builder, operands);
    if (shard && !made.empty() && made.front().getType() == type) {
      SmallVector<Value> shards = cutShards(builder, rule->getLoc(), made.front(), own, runs);
      made.erase(made.begin());
      made.insert(made.begin(), shards.begin(), shards.end());
    }
    if (TypeRange(ValueRange(made)) != TypeRange(results))
      return rule->emitOpError("sees ")
             << describe(rule.getScope()) << " and makes no " << type << " of its direction";
    func::ReturnOp::create(builder, rule->getLoc(), made);
    return function;
  }

  std::optional<SymbolTable> symbols;
  DenseMap<std::tuple<const void *, Type, Attribute, Attribute>, func::FuncOp> functions;
};
} // namespace
