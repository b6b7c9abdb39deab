//===- BlockCut.cpp - one block becomes several around a product ----------===//

#include "TiledProduct.h"
#include "dsopt/Dialect/Graph/Layouts.h"

using namespace mlir;
using namespace dsopt;

/// Whether each block makes the operation's value itself, or shows another one's bytes.
static bool isOfNoBlock(Operation *op) { return graph::isMadeInPlace(op) || graph::isReadView(op); }

/// The operations of a block that are of it.
static SmallVector<Operation *> operationsOf(func::FuncOp function, int64_t block) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    if (auto number = op.getAttrOfType<IntegerAttr>(graph::kBlockAttr);
        number && number.getInt() == block && !isOfNoBlock(&op))
      ops.push_back(&op);
  return ops;
}

/// Calls `visit` for what reads a value, through views of it.
static void forUsers(Value value, function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers())
    if (graph::isReadView(user))
      forUsers(user->getResult(0), visit);
    else
      visit(user);
}

static SmallVector<func::FuncOp> functionsOf(const TiledProduct &product) {
  SmallVector<func::FuncOp> functions;
  for (TileableOpInterface op : {product.forward, product.evaluation})
    if (op)
      functions.push_back(op->getParentOfType<func::FuncOp>());
  return functions;
}

bool BlockCut::isProduct(Operation *op) const {
  return op == product.forward || op == product.backward || op == product.evaluation ||
         op == product.weights || op == product.accumulate;
}

/// What comes before the product in forward is in front of it, what comes before its gradient in backward
/// behind it; of weights' gradients, what the product's or one behind it needs is behind it.
std::string BlockCut::findSides(func::FuncOp function) {
  SmallVector<Operation *> ops = operationsOf(function, product.block);
  bool passed = false, passedBack = false;
  for (Operation *op : ops) {
    Phase phase = *graph::getPhase(op);
    passed |= op == product.forward || op == product.evaluation;
    passedBack |= op == product.backward;
    if (!isProduct(op) && phase != Phase::W)
      sides[op] = (phase == Phase::B ? !passedBack : passed) ? Behind : Front;
  }
  if (std::string why = findParameters(function); !why.empty())
    return why;
  for (Operation *op : llvm::reverse(ops)) {
    bool isOfWeights = graph::getPhase(op) == Phase::W;
    auto accumulate = dyn_cast<graph::AccumulateOp>(op);
    if (isProduct(op) || !(isOfWeights || accumulate))
      continue;
    Side side = Front;
    if (accumulate) {
      auto state = SymbolTable::lookupNearestSymbolFrom<graph::StateOp>(op, accumulate.getStateAttr());
      auto known = parameters.find(state.getParameterAttr());
      // It is added to where the parameter is read.
      if (known == parameters.end() || (!isOfWeights && known->second != sides.lookup(op)))
        return ("the gradient of @" + state.getParameter() + " is not where it is read").str();
      side = known->second;
    }
    sides[op] = side;
    for (Value result : op->getResults())
      forUsers(result, [&](Operation *user) {
        if (user == product.weights || user == product.backward ||
            (sides.contains(user) && sides.lookup(user) == Behind))
          sides[op] = Behind;
      });
  }
  return findParameters(function);
}

/// A parameter is of one block: what reads it is on one side.
std::string BlockCut::findParameters(func::FuncOp function) {
  std::string why;
  for (auto read : function.getOps<graph::ReadOp>())
    forUsers(read, [&](Operation *user) {
      auto side = sides.find(user);
      if (side == sides.end())
        return;
      if (parameters.try_emplace(read.getStateAttr(), side->second).first->second != side->second)
        why = ("@" + read.getState() + " is read in front of its product and behind it").str();
    });
  return why;
}

/// When an operation of the block runs, if its block is `block`: forward from the first one, then backward
/// and weights from the last.
int64_t BlockCut::rank(Operation *op, int64_t block) const {
  Phase phase = *graph::getPhase(op);
  if (phase == Phase::F || phase == Phase::E)
    return block;
  int64_t last = product.block + added();
  return last + 1 + 2 * (last - block) + (phase == Phase::W);
}

/// Everything is computed before it is read.
std::string BlockCut::check(func::FuncOp function) {
  int64_t first = tileBlock(0), last = tileBlock(product.tiles() - 1);
  for (Operation *op : operationsOf(function, product.block)) {
    bool forward = graph::getPhase(op) == Phase::F || graph::getPhase(op) == Phase::E;
    // A product reads in its first tile to run, and is complete behind the last one.
    int64_t reads = rank(op, isProduct(op) ? (forward ? first : last) : blockOf(sides.lookup(op)));
    for (Value operand : op->getOperands()) {
      Operation *source = graph::storageOf(operand).getDefiningOp();
      auto number = source ? source->getAttrOfType<IntegerAttr>(graph::kBlockAttr) : IntegerAttr();
      if (!number || number.getInt() != product.block || isOfNoBlock(source) || op == product.accumulate)
        continue;
      bool isForward = graph::getPhase(source) == Phase::F || graph::getPhase(source) == Phase::E;
      int64_t written =
          rank(source, isProduct(source) ? (isForward ? last : first) : blockOf(sides.lookup(source)));
      if (written > reads)
        return "operations of its block need each other across it";
    }
  }
  return "";
}

std::string BlockCut::find() {
  for (func::FuncOp function : functionsOf(product))
    if (std::string why = findSides(function); !why.empty())
      return why;
  // What no forward operation is of is no block.
  func::FuncOp forward = functionsOf(product).front();
  for (Operation *op : operationsOf(forward, product.block))
    if (Phase phase = *graph::getPhase(op); !isProduct(op) && (phase == Phase::F || phase == Phase::E))
      (sides.lookup(op) == Front ? hasFront : hasBehind) = true;
  for (func::FuncOp function : functionsOf(product))
    if (std::string why = check(function); !why.empty())
      return why;
  return "";
}

void BlockCut::apply() {
  graph::ParameterOp parameter = product.parameter;
  auto module = parameter->getParentOfType<ModuleOp>();
  Builder builder(module.getContext());
  auto renumber = [&](Operation *op, StringRef name, function_ref<int64_t()> inside) {
    auto number = op->getAttrOfType<IntegerAttr>(name);
    if (!number || number.getInt() < product.block)
      return;
    bool isInside = number.getInt() == product.block;
    op->setAttr(name, builder.getI64IntegerAttr(isInside ? inside() : number.getInt() + added()));
  };
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (op != function)
        renumber(op, graph::kBlockAttr, [&] {
          auto side = sides.find(op);
          return side == sides.end() ? product.block : blockOf(side->second);
        });
    });
  for (auto state : module.getOps<graph::StateOp>())
    if (state.getRole() == graph::Role::Gradient)
      renumber(state, "block", [&] {
        auto side = parameters.find(state.getParameterAttr());
        return side == parameters.end() ? product.block : blockOf(side->second);
      });
  if (auto blocks = module->getAttrOfType<IntegerAttr>(graph::kBlocksAttr))
    module->setAttr(graph::kBlocksAttr, builder.getI64IntegerAttr(blocks.getInt() + added()));
}
