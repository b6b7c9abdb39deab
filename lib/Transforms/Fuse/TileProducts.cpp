//===- TileProducts.cpp - large weights in tiles, a block for each --------===//

#include "TiledProduct.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

namespace dsopt {
#define GEN_PASS_DEF_TILEPRODUCTS
#include "dsopt/Transforms/Fuse/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// Replaces a parameter by its tiles.
class Tiler {
public:
  Tiler(const TiledProduct &product, const BlockCut &cut, SymbolTable &symbols)
      : product(product), cut(cut), symbols(symbols),
        type(cast<RankedTensorType>(graph::ParameterOp(product.parameter).getType())),
        builder(type.getContext()) {}
  void run();

private:
  void addParameters();
  void addStates();
  void cutUpdate();
  void cutProduct(graph::MatMulOp whole);
  void cutGradient();
  /// A part of a product: `weight` is its tile, null of a gradient.
  graph::MatMulPartOp part(graph::MatMulOp whole, Cut dimension, int64_t tile, Value weight, Value addend);
  Value concatenate(graph::MatMulOp whole, Cut dimension, ValueRange parts);
  func::FuncOp concatKernel(TypeRange parts, RankedTensorType result, int64_t axis);
  RankedTensorType ofTile(Type whole, int64_t tile) {
    return RankedTensorType::get({product.size(tile), type.getDimSize(1)}, getElementTypeOrSelf(whole));
  }
  /// What is made next is of the tile's block, in the phase of `whole`.
  void tag(Operation *op, Operation *whole, int64_t place) {
    op->setAttr(graph::kBlockAttr, builder.getI64IntegerAttr(cut.tileBlock(place)));
    op->setAttr(graph::kPhaseAttr, whole->getAttr(graph::kPhaseAttr));
  }

  const TiledProduct &product;
  const BlockCut &cut;
  SymbolTable &symbols;
  RankedTensorType type;
  OpBuilder builder;
  int64_t present = 0; ///< the place of the tile that operations are made for
  SmallVector<graph::ParameterOp> tiles;
  /// Of the parameter and its state, by name: what each tile has in its place.
  llvm::MapVector<Attribute, SmallVector<FlatSymbolRefAttr>> names;
};

struct TileProducts : dsopt::impl::TileProductsBase<TileProducts> {
  using TileProductsBase::TileProductsBase;
  void runOnOperation() override;
};
} // namespace

void Tiler::addParameters() {
  graph::ParameterOp whole = product.parameter;
  int64_t rowBytes = type.getDimSize(1) * graph::elementBytes(whole.getSourceType());
  builder.setInsertionPointAfter(whole);
  for (int64_t tile = 0; tile < product.tiles(); ++tile) {
    auto op = cast<graph::ParameterOp>(builder.clone(*whole));
    op.setSymName(graph::freeSymbol(symbols, whole.getSymName() + ".tile." + Twine(tile)));
    op.setType(ofTile(type, tile));
    op.setOffset(whole.getOffset() + product.begin(tile) * rowBytes);
    op.setBytes(product.size(tile) * rowBytes);
    op.setName(whole.getModelName());
    // Hashes are of the whole's chunks.
    op.removeFileBytesAttr();
    op.removeChunksAttr();
    op->setAttr(graph::kPartOfAttr, FlatSymbolRefAttr::get(whole));
    op->setAttr(graph::kPartBeginAttr, builder.getI64IntegerAttr(product.begin(tile) * type.getDimSize(1)));
    symbols.insert(op);
    tiles.push_back(op);
    names[FlatSymbolRefAttr::get(whole)].push_back(FlatSymbolRefAttr::get(op));
  }
}

void Tiler::addStates() {
  graph::ParameterOp whole = product.parameter;
  auto module = whole->getParentOfType<ModuleOp>();
  for (auto state : llvm::to_vector(module.getOps<graph::StateOp>())) {
    if (state.getParameter() != whole.getSymName())
      continue;
    builder.setInsertionPoint(state);
    for (int64_t tile = 0; tile < product.tiles(); ++tile) {
      auto op = cast<graph::StateOp>(builder.clone(*state));
      op.setSymName(graph::freeSymbol(symbols, state.getSymName() + ".tile." + Twine(tile)));
      op.setType(ofTile(state.getType(), tile));
      op.setParameter(tiles[tile].getSymName());
      // Its place among the blocks is the one that the tile has.
      if (op.getBlock())
        op.setBlock(cut.tileBlock(product.tileAt(tile)));
      symbols.insert(op);
      names[FlatSymbolRefAttr::get(state)].push_back(FlatSymbolRefAttr::get(op));
    }
  }
}

/// What an update does with elements it does with those of each tile.
void Tiler::cutUpdate() {
  auto update = symbols.lookup<func::FuncOp>("update");
  if (!update)
    return;
  llvm::SetVector<Operation *> ops;
  for (Operation &op : update.front().without_terminator()) {
    auto read = dyn_cast<graph::ReadOp>(op);
    if ((read && names.contains(read.getStateAttr())) ||
        llvm::any_of(op.getOperands(), [&](Value value) { return ops.contains(value.getDefiningOp()); }))
      ops.insert(&op);
  }
  if (ops.empty())
    return;
  builder.setInsertionPointAfter(ops.back());
  for (int64_t tile = 0; tile < product.tiles(); ++tile) {
    IRMapping values;
    for (Operation *op : ops) {
      Operation *copy = builder.clone(*op, values);
      if (auto state = copy->getAttrOfType<FlatSymbolRefAttr>("state"))
        copy->setAttr("state", names[state][tile]);
      for (Value result : copy->getResults())
        if (cast<ShapedType>(result.getType()).getShape() == type.getShape())
          result.setType(ofTile(result.getType(), tile));
    }
  }
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

graph::MatMulPartOp Tiler::part(graph::MatMulOp whole, Cut dimension, int64_t tile, Value weight,
                                Value addend) {
  bool ta = whole.getTransposeA(), tb = whole.getTransposeB();
  auto shown = [&](Value value, int64_t axis) -> Value {
    SmallVector<int64_t> sizes(cast<ShapedType>(value.getType()).getShape()), starts(2, 0), steps(2, 1);
    starts[axis] = product.begin(tile);
    sizes[axis] = product.size(tile);
    auto slice =
        graph::SliceOp::create(builder, whole.getLoc(), value, starts, sizes, steps, graph::View::Read);
    tag(slice, whole, present);
    return slice;
  };
  Value lhs = whole.getLhs(), rhs = whole.getRhs();
  bool isLeft = weight && isWeight(lhs, product.parameter);
  if (weight)
    (isLeft ? lhs : rhs) = weight;
  // What the tile meets.
  if (dimension == Cut::K && isLeft)
    rhs = shown(rhs, tb ? 1 : 0);
  else if (dimension == Cut::K)
    lhs = shown(lhs, ta ? 0 : 1);
  else if (!weight)
    lhs = shown(lhs, ta ? 1 : 0);
  auto a = cast<ShapedType>(whole.getLhs().getType());
  auto result = cast<RankedTensorType>(whole.getType());
  int64_t m = result.getDimSize(0), n = result.getDimSize(1), k = a.getDimSize(ta ? 0 : 1);
  Type element = result.getElementType();
  if (dimension == Cut::K && tile + 1 < product.tiles())
    element = builder.getF32Type();
  int64_t rows = dimension == Cut::M ? product.size(tile) : m;
  int64_t columns = dimension == Cut::N ? graph::MatMulPartOp::paddedColumns(product.size(tile), n) : n;
  auto op =
      graph::MatMulPartOp::create(builder, whole.getLoc(), RankedTensorType::get({rows, columns}, element),
                                  lhs, rhs, addend, ta, tb, builder.getDenseI64ArrayAttr({m, n, k}));
  tag(op, whole, present);
  return op;
}

func::FuncOp Tiler::concatKernel(TypeRange parts, RankedTensorType result, int64_t axis) {
  auto function = builder.getFunctionType(parts, {result});
  OpBuilder::InsertionGuard guard(builder);
  builder.clearInsertionPoint();
  Location loc = graph::ParameterOp(product.parameter).getLoc();
  auto kernel = func::FuncOp::create(builder, loc, graph::freeSymbol(symbols, "concat"), function);
  kernel.setPrivate();
  kernel->setAttr(graph::kIterateAttr,
                  graph::IterationAttr::get(builder.getContext(), graph::Iteration::Rows));
  kernel->setAttr(graph::kRangeAttr, builder.getDenseI64ArrayAttr(result.getShape().drop_back()));
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  SmallVector<Value> values;
  for (auto [tile, value] : llvm::enumerate(kernel.getArguments())) {
    SmallVector<int64_t> sizes(cast<ShapedType>(value.getType()).getShape());
    sizes[axis] = product.size(tile);
    bool isPadded = sizes[1] != cast<ShapedType>(value.getType()).getDimSize(1);
    values.push_back(isPadded ? graph::SliceOp::create(builder, loc, value, ArrayRef<int64_t>{0, 0}, sizes,
                                                       ArrayRef<int64_t>{1, 1}, graph::View::None)
                                    .getResult()
                              : Value(value));
  }
  Value whole = graph::ConcatOp::create(builder, loc, values, axis, graph::View::None);
  func::ReturnOp::create(builder, loc, whole);
  symbols.insert(kernel);
  return kernel;
}

/// The whole of the parts that are there, in the block that makes the last of them.
Value Tiler::concatenate(graph::MatMulOp whole, Cut dimension, ValueRange parts) {
  auto result = cast<RankedTensorType>(whole.getType());
  func::FuncOp kernel = concatKernel(parts.getTypes(), result, dimension == Cut::M ? 0 : 1);
  auto op = graph::KernelOp::create(builder, whole.getLoc(), TypeRange{result},
                                    FlatSymbolRefAttr::get(kernel), parts);
  tag(op, whole, present);
  return op.getOutputs()[0];
}

void Tiler::cutProduct(graph::MatMulOp whole) {
  if (!whole)
    return;
  builder.setInsertionPoint(whole);
  bool isBackward = graph::getPhase(whole) == Phase::B;
  Cut dimension = cutOf(whole, product.parameter);
  SmallVector<Value> parts(product.tiles());
  Value sum;
  for (int64_t step = 0, steps = product.tiles(); step < steps; ++step) {
    present = isBackward ? steps - 1 - step : step;
    int64_t tile = product.tileAt(present);
    Value old = isWeight(whole.getLhs(), product.parameter) ? whole.getLhs() : whole.getRhs();
    auto weight =
        graph::ReadOp::create(builder, whole.getLoc(), ofTile(old.getType(), tile), tiles[tile].getSymName());
    tag(weight, whole, present);
    parts[tile] = sum = part(whole, dimension, tile, weight, dimension == Cut::K ? sum : Value());
  }
  whole.replaceAllUsesWith(dimension == Cut::K ? sum : concatenate(whole, dimension, parts));
  whole.erase();
}

void Tiler::cutGradient() {
  graph::MatMulOp whole = product.weights;
  graph::AccumulateOp accumulate = product.accumulate;
  if (!whole)
    return;
  builder.setInsertionPoint(whole);
  for (present = 0; present < product.tiles(); ++present) {
    int64_t tile = product.tileAt(present);
    Value gradient = part(whole, Cut::M, tile, Value(), Value());
    auto op = graph::AccumulateOp::create(builder, accumulate.getLoc(),
                                          names[accumulate.getStateAttr()][tile], gradient);
    tag(op, whole, present);
  }
  accumulate.erase();
  whole.erase();
}

void Tiler::run() {
  addParameters();
  addStates();
  cutUpdate();
  for (graph::MatMulOp whole : {product.forward, product.backward, product.evaluation})
    cutProduct(whole);
  cutGradient();
  // Nothing reads the whole any more.
  graph::ParameterOp parameter = product.parameter;
  auto module = parameter->getParentOfType<ModuleOp>();
  module.walk([&](graph::ReadOp read) {
    if (isWeight(read, parameter))
      read.erase();
  });
  for (auto &[name, tiled] : names)
    if (auto state = symbols.lookup<graph::StateOp>(cast<FlatSymbolRefAttr>(name).getAttr()))
      symbols.erase(state);
}

void TileProducts::runOnOperation() {
  ModuleOp module = getOperation();
  int64_t most = takeOption(module, "tile_products", elements, /*unset=*/0, 0);
  if (most == 0)
    return;
  for (auto parameter : llvm::to_vector(module.getOps<graph::ParameterOp>())) {
    if (graph::numElements(parameter.getType()) <= most)
      continue;
    Tiling tiling = findTiling(parameter, most);
    BlockCut cut(tiling.product);
    if (tiling.why.empty())
      tiling.why = cut.find();
    if (!tiling.why.empty()) {
      remark::missed(parameter.getLoc(), remark::RemarkOpts::name("tile-products").category(kOverlapRemarks))
          << ("@" + parameter.getModelName() + " has " + Twine(graph::numElements(parameter.getType())) +
              " elements and is not cut into tiles: " + tiling.why)
                 .str();
      continue;
    }
    cut.apply();
    SymbolTable symbols(module);
    Tiler(tiling.product, cut, symbols).run();
  }
}
