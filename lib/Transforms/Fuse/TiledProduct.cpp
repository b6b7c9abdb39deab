//===- TiledProduct.cpp - which parameters can be cut into tiles ----------===//

#include "TiledProduct.h"

using namespace mlir;
using namespace dsopt;

int64_t TiledProduct::tiles() const {
  graph::ParameterOp op = parameter;
  return llvm::divideCeil(cast<ShapedType>(op.getType()).getDimSize(0), rows);
}

int64_t TiledProduct::size(int64_t tile) const {
  graph::ParameterOp op = parameter;
  return std::min(rows, cast<ShapedType>(op.getType()).getDimSize(0) - begin(tile));
}

int64_t TiledProduct::tileAt(int64_t place) const { return reversed ? tiles() - 1 - place : place; }

bool dsopt::isWeight(Value value, graph::ParameterOp parameter) {
  auto read = value.getDefiningOp<graph::ReadOp>();
  return read && read.getState() == parameter.getSymName();
}

int64_t dsopt::weightOf(Operation *product, graph::ParameterOp parameter) {
  for (OpOperand &operand : product->getOpOperands())
    if (isWeight(operand.get(), parameter))
      return operand.getOperandNumber();
  return -1;
}

/// Notes a product with the weight, by its phase.
static std::string noteUse(TiledProduct &found, Operation *user, int64_t &products) {
  auto product = dyn_cast<TileableOpInterface>(user);
  if (!product)
    return ("'" + user->getName().getStringRef() + "' reads it").str();
  auto isIt = [&](Value operand) { return isWeight(operand, found.parameter); };
  if (!product.canBeCut() || llvm::count_if(user->getOperands(), isIt) != 1)
    return "its product is not one of matrices of several rows and columns";
  std::optional<Phase> phase = graph::getPhase(product);
  auto block = product->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
  if (!phase || !block)
    return "its product is of no block";
  // What only gradients of weights follow from is of their phase.
  TileableOpInterface &slot = *phase == Phase::F   ? found.forward
                              : *phase == Phase::E ? found.evaluation
                                                   : found.backward;
  if (slot || (products++ > 0 && found.block != block.getInt()))
    return "several products take it";
  slot = product;
  found.block = block.getInt();
  return "";
}

/// Notes the product that is its gradient.
static std::string noteGradient(TiledProduct &found, graph::AccumulateOp accumulate) {
  auto product = accumulate.getValue().getDefiningOp<TileableOpInterface>();
  if (found.accumulate || !product || !product->hasOneUse() || !product.canBeCut() ||
      graph::getPhase(product) != Phase::W || graph::getPhase(accumulate) != Phase::W ||
      product->getAttr(graph::kBlockAttr) != accumulate->getAttr(graph::kBlockAttr))
    return "its gradient is not one product";
  found.accumulate = accumulate;
  found.weights = product;
  return "";
}

static std::string findUses(TiledProduct &found, ModuleOp module, SymbolTable &symbols) {
  int64_t products = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.getName() == graph::kUpdateFunction || function.isExternal())
      continue;
    std::string why;
    function.walk([&](Operation *op) {
      if (auto read = dyn_cast<graph::ReadOp>(op); read && isWeight(read, found.parameter)) {
        for (Operation *user : read->getUsers())
          if (why.empty())
            why = noteUse(found, user, products);
      } else if (auto accumulate = dyn_cast<graph::AccumulateOp>(op)) {
        auto state = symbols.lookup<graph::StateOp>(accumulate.getState());
        if (state && state.getParameter() == found.parameter.getSymName() && why.empty())
          why = noteGradient(found, accumulate);
      }
    });
    if (!why.empty())
      return why;
  }
  if (!found.forward && !found.evaluation)
    return "no product takes it";
  if (found.forward ? !found.accumulate != found.parameter.getFrozen() : found.backward || found.accumulate)
    return "its gradient is not one product";
  if (found.accumulate &&
      found.accumulate->getAttr(graph::kBlockAttr) != found.forward->getAttr(graph::kBlockAttr))
    return "its gradient is of another block";
  return "";
}

/// Whether a rule of whole matrices updates it: the rule reads it, or its master, and its state.
static bool isUpdatedWhole(graph::ParameterOp parameter, SymbolTable &symbols) {
  auto update = symbols.lookup<func::FuncOp>(graph::kUpdateFunction);
  return update && llvm::any_of(update.front(), [&](Operation &op) {
           return graph::getFunctions(&op).matrix && llvm::any_of(op.getOperands(), [&](Value operand) {
                    auto read = operand.getDefiningOp<graph::ReadOp>();
                    auto state = read ? symbols.lookup<graph::StateOp>(read.getStateAttr().getAttr())
                                      : graph::StateOp();
                    return state && state.getParameter() == parameter.getSymName();
                  });
         });
}

Tiling dsopt::findTiling(graph::ParameterOp parameter, int64_t most) {
  auto module = parameter->getParentOfType<ModuleOp>();
  Tiling tiling;
  TiledProduct &product = tiling.product;
  product.parameter = parameter;
  SymbolTable symbols(module);
  if (isUpdatedWhole(parameter, symbols)) {
    tiling.why = "its update sees it whole";
    return tiling;
  }
  if (tiling.why = findUses(product, module, symbols); !tiling.why.empty())
    return tiling;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter.getType()).getShape();
  TileableOpInterface any = product.forward ? product.forward : product.evaluation;
  int64_t unit = any.getCutUnit();
  if (shape[0] < 2 * unit)
    tiling.why = "it has fewer than " + std::to_string(2 * unit) + " rows";
  product.rows = std::max<int64_t>(most / shape[1] / unit, 1) * unit;
  if (TileableOpInterface backward = product.backward)
    product.reversed = backward.getCut(weightOf(backward, parameter)) == Cut::K;
  return tiling;
}
