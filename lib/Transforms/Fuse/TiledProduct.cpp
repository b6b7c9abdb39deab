//===- TiledProduct.cpp - which parameters can be cut into tiles ----------===//

#include "TiledProduct.h"
#include "dsopt/Dialect/Graph/Layouts.h"

using namespace mlir;
using namespace dsopt;

/// Rows of tiles are multiples of it, and a product of fewer than two adds in another order.
static constexpr int64_t kUnit = DSOPT_GEMM_CHUNK;

int64_t TiledProduct::tiles() const {
  graph::ParameterOp op = parameter;
  return llvm::divideCeil(cast<ShapedType>(op.getType()).getDimSize(0), rows);
}

int64_t TiledProduct::size(int64_t tile) const {
  graph::ParameterOp op = parameter;
  return std::min(rows, cast<ShapedType>(op.getType()).getDimSize(0) - begin(tile));
}

int64_t TiledProduct::tileAt(int64_t place) const { return reversed ? tiles() - 1 - place : place; }

bool dsopt::isWeight(Value operand, graph::ParameterOp parameter) {
  auto read = operand.getDefiningOp<graph::ReadOp>();
  return read && read.getState() == parameter.getSymName();
}

Cut dsopt::cutOf(graph::MatMulOp product, graph::ParameterOp parameter) {
  if (isWeight(product.getRhs(), parameter))
    return product.getTransposeB() ? Cut::N : Cut::K;
  return product.getTransposeA() ? Cut::K : Cut::M;
}

/// Whether the library's calls for a part can be those for the whole: of matrices whose rows are apart, and
/// whose result is a value of its own.
static bool canBeCut(graph::MatMulOp product) {
  auto isMatrix = [](Value value) {
    ArrayRef<int64_t> shape = cast<ShapedType>(value.getType()).getShape();
    return shape.size() == 2 && shape[0] > 1 && shape[1] > 1;
  };
  Type type = getElementTypeOrSelf(product.getLhs().getType());
  return llvm::all_of(product->getOperands(), isMatrix) && isMatrix(product.getResult()) &&
         (type.isF32() || type.isBF16()) && graph::locate(product.getResult()).root == product.getResult();
}

/// Notes a product with the weight, by its phase.
static std::string noteUse(TiledProduct &found, Operation *user, int64_t &products) {
  auto product = dyn_cast<graph::MatMulOp>(user);
  if (!product)
    return ("'" + user->getName().getStringRef() + "' reads it").str();
  if (!canBeCut(product) ||
      isWeight(product.getLhs(), found.parameter) == isWeight(product.getRhs(), found.parameter))
    return "its product is not one of matrices of several rows and columns";
  std::optional<Phase> phase = graph::getPhase(product);
  auto block = product->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
  if (!phase || !block)
    return "its product is of no block";
  // What only gradients of weights follow from is of their phase.
  graph::MatMulOp &slot = *phase == Phase::F   ? found.forward
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
  auto product = accumulate.getValue().getDefiningOp<graph::MatMulOp>();
  if (found.accumulate || !product || !product->hasOneUse() || !canBeCut(product) ||
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
    if (function.getName() == "update" || function.isExternal())
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

Tiling dsopt::findTiling(graph::ParameterOp parameter, int64_t most) {
  auto module = parameter->getParentOfType<ModuleOp>();
  auto type = cast<RankedTensorType>(parameter.getType());
  Tiling tiling;
  tiling.product.parameter = parameter;
  if (type.getRank() != 2 || type.getDimSize(0) < 2 * kUnit) {
    tiling.why = "it has fewer than " + std::to_string(2 * kUnit) + " rows";
    return tiling;
  }
  tiling.product.rows = std::max<int64_t>(most / type.getDimSize(1) / kUnit, 1) * kUnit;
  SymbolTable symbols(module);
  tiling.why = findUses(tiling.product, module, symbols);
  if (graph::MatMulOp backward = tiling.product.backward)
    tiling.product.reversed = cutOf(backward, parameter) == Cut::K;
  return tiling;
}
