//===- WireKernels.cpp - what goes over the wire in another type ----------===//

#include "WireKernels.h"

using namespace mlir;
using namespace dsopt;

/// The largest multiples of a scale, and the smallest scale: one below has no reciprocal.
static constexpr float kMostI8 = 127, kMostI4 = 7, kLeastScale = 0x1p-126f;

SymbolRefAttr WireKernels::make(StringRef name, FunctionType type, graph::Iteration iteration,
                                llvm::function_ref<void(func::FuncOp)> write) {
  SymbolRefAttr &known = kernels[{StringAttr::get(home.getContext(), name), type}];
  if (known)
    return known;
  auto function = func::FuncOp::create(home.getLoc(), home.freeName(name), type);
  function.addEntryBlock();
  write(function);
  return known = home.add(function, iteration);
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
  return make(name, type, graph::Iteration::Flat, [&](func::FuncOp function) {
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
      value = graph::AddOp::create(builder, loc, tensor(f32), cast(value, f32),
                                   cast(function.getArgument(1), f32));
      value = cast(value, operands.front());
    }
    func::ReturnOp::create(builder, loc, cast(value, result));
  });
}

SymbolRefAttr WireKernels::convert(StringRef name, Type from, Type to) {
  return get(name, {from}, to, /*inPlace=*/false);
}
SymbolRefAttr WireKernels::accumulate(Type target, Type source) {
  return get("accumulate", {target, source}, target, /*inPlace=*/true);
}
SymbolRefAttr WireKernels::sum(Type type, Type to) { return get("sum", {type, type}, to, /*inPlace=*/false); }

namespace {
/// Writes rows of f32 in a kernel.
struct Rows {
  Rows(func::FuncOp function, int64_t row)
      : b(OpBuilder::atBlockBegin(&function.front())), loc(function.getLoc()), f32(b.getF32Type()),
        wide(RankedTensorType::get({KernelHome::kRows, row}, f32)),
        one(RankedTensorType::get({KernelHome::kRows, 1}, f32)) {}

  Value splat(float value) {
    auto scalar = RankedTensorType::get({}, f32);
    return graph::ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, value));
  }
  Value to(Type element, Value x) {
    if (getElementTypeOrSelf(x) == element)
      return x;
    return graph::CastOp::create(b, loc, wide.clone(element), x);
  }
  Value mul(Value x, Value y) { return graph::MulOp::create(b, loc, wide, x, y); }
  Value add(Value x, Value y) { return graph::AddOp::create(b, loc, wide, x, y); }
  Value sub(Value x, Value y) { return graph::SubOp::create(b, loc, wide, x, y); }
  Value floor(Value x) { return graph::FloorOp::create(b, loc, wide, x); }
  /// The scale of each row: none is 0, and no quotient is larger than `most`.
  Value scales(Value x, float most) {
    Value largest = graph::ReduceMaxOp::create(b, loc, one, graph::AbsOp::create(b, loc, wide, x),
                                               b.getDenseI64ArrayAttr({1}), /*keepdims=*/true);
    return graph::MaxOp::create(b, loc, one, graph::DivOp::create(b, loc, one, largest, splat(most)),
                                splat(kLeastScale));
  }
  Value multiples(Value x, Value scales) {
    return graph::RoundOp::create(b, loc, wide, mul(x, graph::ReciprocalOp::create(b, loc, one, scales)));
  }
  void finish(ValueRange values) { func::ReturnOp::create(b, loc, values); }

  OpBuilder b;
  Location loc;
  Type f32;
  RankedTensorType wide, one;
};
} // namespace

SymbolRefAttr WireKernels::overRows(const std::string &name, ArrayRef<Type> inputs, ArrayRef<Type> results,
                                    int64_t row, llvm::function_ref<void(func::FuncOp)> write) {
  Builder types(home.getContext());
  // Scales are one for each row, and f32.
  auto tensors = [&](ArrayRef<Type> elements) {
    return llvm::map_to_vector(elements, [&](Type element) -> Type {
      return element ? RankedTensorType::get({KernelHome::kRows, row}, element)
                     : RankedTensorType::get({KernelHome::kRows, 1}, types.getF32Type());
    });
  };
  return make(name, types.getFunctionType(tensors(inputs), tensors(results)), graph::Iteration::Rows, write);
}

SymbolRefAttr WireKernels::quantize(Type from, int64_t row) {
  Type i8 = IntegerType::get(home.getContext(), 8);
  return overRows(named("quantize", from) + "." + std::to_string(row), from, {i8, Type()}, row,
                  [&](func::FuncOp function) {
                    Rows rows(function, row);
                    Value x = rows.to(rows.f32, function.getArgument(0));
                    Value scales = rows.scales(x, kMostI8);
                    rows.finish({rows.to(i8, rows.multiples(x, scales)), scales});
                  });
}

SymbolRefAttr WireKernels::dequantize(Type to, int64_t row) {
  Type i8 = IntegerType::get(home.getContext(), 8);
  return overRows(named("dequantize", to) + "." + std::to_string(row), {i8, Type()}, to, row,
                  [&](func::FuncOp function) {
                    Rows rows(function, row);
                    Value x = rows.to(rows.f32, function.getArgument(0));
                    rows.finish(rows.to(to, rows.mul(x, function.getArgument(1))));
                  });
}

SymbolRefAttr WireKernels::pairs(Pairs way, int64_t row) {
  Type i8 = IntegerType::get(home.getContext(), 8), f32 = Float32Type::get(home.getContext());
  std::string suffix = ".pairs." + std::to_string(row);
  if (way == Pairs::Quantize)
    return overRows("wire.quantize" + suffix, {f32, f32}, {i8, Type(), Type()}, row,
                    [&](func::FuncOp function) {
                      Rows rows(function, row);
                      Value x = function.getArgument(0), y = function.getArgument(1);
                      Value sx = rows.scales(x, kMostI4), sy = rows.scales(y, kMostI4);
                      // The first is 1 to 15 in the lower bits, the second signed above them.
                      Value low = rows.add(rows.multiples(x, sx), rows.splat(8));
                      Value high = rows.mul(rows.multiples(y, sy), rows.splat(16));
                      rows.finish({rows.to(i8, rows.add(high, low)), sx, sy});
                    });
  bool adds = way == Pairs::Accumulate;
  SmallVector<Type> inputs = {i8, Type(), Type()};
  if (adds)
    inputs.insert(inputs.begin(), {f32, f32});
  return overRows((adds ? "wire.accumulate" : "wire.dequantize") + suffix, inputs, {f32, f32}, row,
                  [&](func::FuncOp function) {
                    Rows rows(function, row);
                    auto arguments = function.getArguments().take_back(3);
                    Value pairs = rows.to(rows.f32, arguments[0]);
                    Value high = rows.floor(rows.mul(pairs, rows.splat(0.0625)));
                    Value low = rows.sub(rows.sub(pairs, rows.mul(high, rows.splat(16))), rows.splat(8));
                    Value x = rows.mul(low, arguments[1]), y = rows.mul(high, arguments[2]);
                    if (adds) {
                      function->setAttr(graph::kInPlaceAttr, rows.b.getDenseI64ArrayAttr({0, 1}));
                      x = rows.add(function.getArgument(0), x);
                      y = rows.add(function.getArgument(1), y);
                    }
                    rows.finish({x, y});
                  });
}

SymbolRefAttr WireKernels::clear(bool inPlace) {
  Builder types(home.getContext());
  auto tensor = RankedTensorType::get({dist::kGranule}, types.getI32Type());
  FunctionType type = types.getFunctionType(tensor, tensor);
  return make(inPlace ? "wire.clear" : "wire.zeros", type, graph::Iteration::Flat,
              [&](func::FuncOp function) {
                if (inPlace)
                  function->setAttr(graph::kInPlaceAttr, types.getDenseI64ArrayAttr({0}));
                OpBuilder b = OpBuilder::atBlockBegin(&function.front());
                Value x = function.getArgument(0);
                func::ReturnOp::create(b, function.getLoc(),
                                       Value(graph::SubOp::create(b, function.getLoc(), tensor, x, x)));
              });
}
