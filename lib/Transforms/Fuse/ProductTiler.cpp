//===- ProductTiler.cpp - a parameter becomes its tiles -------------------===//

#include "ProductTiler.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dsopt;

void ProductTiler::addParameters() {
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
    op.setPartOf(whole.getSymName());
    op.setPartBegin(product.begin(tile) * type.getDimSize(1));
    symbols.insert(op);
    tiles.push_back(op);
    names[FlatSymbolRefAttr::get(whole)].push_back(FlatSymbolRefAttr::get(op));
  }
}

void ProductTiler::addStates() {
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
        op.setBlock(blocks.tileBlock(product.tileAt(tile)));
      symbols.insert(op);
      names[FlatSymbolRefAttr::get(state)].push_back(FlatSymbolRefAttr::get(op));
    }
  }
}

/// What an update does with elements it does with those of each tile.
void ProductTiler::cutUpdate() {
  auto update = symbols.lookup<func::FuncOp>(graph::kUpdateFunction);
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

Value ProductTiler::build(TileableOpInterface whole, ProductPart part, int64_t tile) {
  part.begin = product.begin(tile);
  part.size = product.size(tile);
  part.isLast = tile + 1 == product.tiles();
  Operation *before = whole->getPrevNode();
  Value result = whole.buildPart(builder, part);
  for (Operation *made = whole->getPrevNode(); made != before; made = made->getPrevNode())
    tag(made, whole, present);
  return result;
}

func::FuncOp ProductTiler::concatKernel(TypeRange parts, RankedTensorType result, int64_t axis) {
  auto function = builder.getFunctionType(parts, {result});
  func::FuncOp &kernel = kernels[{function, axis}];
  if (kernel)
    return kernel;
  OpBuilder::InsertionGuard guard(builder);
  builder.clearInsertionPoint();
  Location loc = graph::ParameterOp(product.parameter).getLoc();
  std::string name = "concat";
  for (int64_t number = 1; symbols.lookup(name); ++number)
    name = "concat." + std::to_string(number);
  kernel = func::FuncOp::create(builder, loc, name, function);
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
Value ProductTiler::concatenate(Operation *whole, Cut cut, ValueRange parts) {
  auto result = cast<RankedTensorType>(whole->getResult(0).getType());
  func::FuncOp kernel = concatKernel(parts.getTypes(), result, cut == Cut::M ? 0 : 1);
  auto op = graph::KernelOp::create(builder, whole->getLoc(), TypeRange{result},
                                    FlatSymbolRefAttr::get(kernel), parts);
  tag(op, whole, present);
  return op.getOutputs()[0];
}

void ProductTiler::cutProduct(TileableOpInterface whole) {
  if (!whole)
    return;
  builder.setInsertionPoint(whole);
  bool isBackward = graph::getPhase(whole) == Phase::B || graph::getPhase(whole) == Phase::W;
  ProductPart part;
  part.operand = weightOf(whole, product.parameter);
  part.cut = whole.getCut(part.operand);
  Type type = whole->getOperand(part.operand).getType();
  SmallVector<Value> parts(product.tiles());
  for (int64_t step = 0, steps = product.tiles(); step < steps; ++step) {
    present = isBackward ? steps - 1 - step : step;
    int64_t tile = product.tileAt(present);
    auto read = graph::ReadOp::create(builder, whole->getLoc(), ofTile(type, tile), tiles[tile].getSymName());
    tag(read, whole, present);
    part.tile = read;
    parts[tile] = build(whole, part, tile);
    if (part.cut == Cut::K)
      part.addend = parts[tile];
  }
  whole->getResult(0).replaceAllUsesWith(part.cut == Cut::K ? part.addend
                                                            : concatenate(whole, part.cut, parts));
  whole->erase();
}

void ProductTiler::cutGradient() {
  TileableOpInterface whole = product.weights;
  graph::AccumulateOp accumulate = product.accumulate;
  if (!whole)
    return;
  builder.setInsertionPoint(whole);
  for (present = 0; present < product.tiles(); ++present) {
    int64_t tile = product.tileAt(present);
    Value gradient = build(whole, ProductPart(), tile);
    auto op = graph::AccumulateOp::create(builder, accumulate.getLoc(),
                                          names[accumulate.getStateAttr()][tile], gradient);
    tag(op, whole, present);
  }
  accumulate.erase();
  whole->erase();
}

void ProductTiler::run() {
  addParameters();
  addStates();
  cutUpdate();
  for (TileableOpInterface whole : {product.forward, product.backward, product.evaluation})
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
