//===- WireKernels.cpp - what goes over the wire in another type ----------===//

#include "WireKernels.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt;

/// Rows that a kernel over rows is said to have: it runs on any number of them.
static constexpr int64_t kRows = 64;
/// The largest multiple of a scale, and the smallest scale: one below has no reciprocal.
static constexpr float kMost = 127, kLeastScale = 0x1p-126f;

WireKernels::WireKernels(ModuleOp module)
    : nested(module.lookupSymbol<ModuleOp>(exec::kKernelsModule)), home(nested ? nested : module),
      symbols(home) {}

func::FuncOp WireKernels::create(StringRef name, FunctionType type, bool overRows) {
  OpBuilder builder = OpBuilder::atBlockEnd(home.getBody());
  auto function = func::FuncOp::create(builder, home.getLoc(), graph::freeSymbol(symbols, name.str()), type);
  nested ? function.setNested() : function.setPrivate();
  function->setAttr(graph::kIterateAttr,
                    graph::IterationAttr::get(home.getContext(),
                                              overRows ? graph::Iteration::Rows : graph::Iteration::Flat));
  function->setAttr(graph::kRangeAttr, builder.getDenseI64ArrayAttr({overRows ? kRows : dist::kGranule}));
  function.addEntryBlock();
  return function;
}

SymbolRefAttr WireKernels::finish(func::FuncOp function) {
  symbols.insert(function);
  auto name = FlatSymbolRefAttr::get(function);
  return nested ? SymbolRefAttr::get(nested.getSymNameAttr(), name) : SymbolRefAttr(name);
}

static std::string named(StringRef what, Type type) {
  std::string name = ("wire." + what).str();
  llvm::raw_string_ostream(name) << '.' << type;
  return name;
}

SymbolRefAttr WireKernels::get(StringRef what, ArrayRef<Type> operands, Type result, bool inPlace) {
  std::string name = named(what, operands.back());
  Builder types(home.getContext());
  auto tensor = [](Type element) -> Type { return RankedTensorType::get({dist::kGranule}, element); };
  FunctionType type = types.getFunctionType(llvm::map_to_vector(operands, tensor), tensor(result));
  SymbolRefAttr &known = kernels[{types.getStringAttr(name), type}];
  if (known)
    return known;
  func::FuncOp function = create(name, type, /*overRows=*/false);
  if (inPlace)
    function->setAttr(graph::kInPlaceAttr, types.getDenseI64ArrayAttr({0}));
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  Location loc = function.getLoc();
  auto cast = [&](Value value, Type to) -> Value {
    if (getElementTypeOrSelf(value) == to)
      return value;
    return graph::CastOp::create(builder, loc, tensor(to), value);
  };
  Value value = function.getArgument(0);
  if (operands.size() > 1) {
    Type f32 = builder.getF32Type();
    value =
        graph::AddOp::create(builder, loc, tensor(f32), cast(value, f32), cast(function.getArgument(1), f32));
    value = cast(value, operands.front());
  }
  func::ReturnOp::create(builder, loc, cast(value, result));
  return known = finish(function);
}

SymbolRefAttr WireKernels::convert(StringRef name, Type from, Type to) {
  return get(name, {from}, to, /*inPlace=*/false);
}
SymbolRefAttr WireKernels::accumulate(Type target, Type source) {
  return get("accumulate", {target, source}, target, /*inPlace=*/true);
}
SymbolRefAttr WireKernels::sum(Type type, Type to) { return get("sum", {type, type}, to, /*inPlace=*/false); }

SymbolRefAttr WireKernels::quantize(Type from, int64_t row) {
  std::string name = named("quantize", from) + "." + std::to_string(row);
  Builder types(home.getContext());
  Type f32 = types.getF32Type();
  auto wide = RankedTensorType::get({kRows, row}, f32), one = RankedTensorType::get({kRows, 1}, f32);
  FunctionType type = types.getFunctionType(wide.clone(from), {wide.clone(types.getI8Type()), one});
  SymbolRefAttr &known = kernels[{types.getStringAttr(name), type}];
  if (known)
    return known;
  func::FuncOp function = create(name, type, /*overRows=*/true);
  OpBuilder b = OpBuilder::atBlockBegin(&function.front());
  Location loc = function.getLoc();
  auto splat = [&](float value) -> Value {
    auto scalar = RankedTensorType::get({}, f32);
    return graph::ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, value));
  };
  Value x = function.getArgument(0);
  if (from != f32)
    x = graph::CastOp::create(b, loc, wide, x);
  Value largest = graph::ReduceMaxOp::create(b, loc, one, graph::AbsOp::create(b, loc, wide, x),
                                             b.getDenseI64ArrayAttr({1}), /*keepdims=*/true);
  // A block of zeros has a scale as well, and no quotient is larger than the largest multiple.
  Value scale = graph::MaxOp::create(b, loc, one, graph::DivOp::create(b, loc, one, largest, splat(kMost)),
                                     splat(kLeastScale));
  Value inverse = graph::ReciprocalOp::create(b, loc, one, scale);
  Value multiple = graph::RoundOp::create(b, loc, wide, graph::MulOp::create(b, loc, wide, x, inverse));
  func::ReturnOp::create(b, loc,
                         ValueRange{graph::CastOp::create(b, loc, type.getResult(0), multiple), scale});
  return known = finish(function);
}

SymbolRefAttr WireKernels::dequantize(Type to, int64_t row) {
  std::string name = named("dequantize", to) + "." + std::to_string(row);
  Builder types(home.getContext());
  Type f32 = types.getF32Type();
  auto wide = RankedTensorType::get({kRows, row}, f32), one = RankedTensorType::get({kRows, 1}, f32);
  FunctionType type = types.getFunctionType({wide.clone(types.getI8Type()), one}, wide.clone(to));
  SymbolRefAttr &known = kernels[{types.getStringAttr(name), type}];
  if (known)
    return known;
  func::FuncOp function = create(name, type, /*overRows=*/true);
  OpBuilder b = OpBuilder::atBlockBegin(&function.front());
  Location loc = function.getLoc();
  Value value = graph::CastOp::create(b, loc, wide, function.getArgument(0));
  value = graph::MulOp::create(b, loc, wide, value, function.getArgument(1));
  if (to != f32)
    value = graph::CastOp::create(b, loc, type.getResult(0), value);
  func::ReturnOp::create(b, loc, value);
  return known = finish(function);
}
