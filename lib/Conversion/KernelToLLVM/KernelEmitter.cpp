//===- KernelEmitter.cpp - scalars of a kernel's tensors, on demand -------===//

#include "KernelEmitter.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dsopt {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// i1 takes a byte in memory.
static Type storedType(Type elementType, OpBuilder &b) {
  return elementType.isInteger(1) ? b.getI8Type() : elementType;
}

KernelEmitter::KernelEmitter(func::FuncOp function, bool reassociates)
    : b(function.getLoc(), function.getContext()), reassociates(reassociates) {
  source.takeBody(function.getBody());
  Block &old = source.front();
  auto inPlace = function->getAttrOfType<DenseI64ArrayAttr>(graph::kInPlaceAttr);
  auto bufferType = [&](Type type) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    return MemRefType::get(tensor.getNumElements(), storedType(tensor.getElementType(), b));
  };
  SmallVector<Type> types{b.getIndexType(), b.getIndexType()};
  for (Value argument : old.getArguments())
    types.push_back(bufferType(argument.getType()));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!inPlace || inPlace[i] >= old.getNumArguments())
      types.push_back(bufferType(type));
  function.setAllArgAttrs(ArrayAttr());
  function.setAllResultAttrs(ArrayAttr());
  function.setType(b.getFunctionType(types, {}));
  for (size_t i = 2; i < types.size(); ++i)
    function.setArgAttr(i, "llvm.noalias", b.getUnitAttr());

  entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  func::ReturnOp::create(b);
  b.setInsertionPointToStart(entry);
  low = entry->getArgument(0);
  high = entry->getArgument(1);
  for (auto [argument, buffer] : llvm::zip(old.getArguments(), entry->getArguments().drop_front(2)))
    buffers[argument] = buffer;
  for (auto [i, value] : llvm::enumerate(old.getTerminator()->getOperands()))
    results.push_back({value, entry->getArgument(2 + (inPlace ? inPlace[i] : old.getNumArguments() + i))});
  for (auto generic : old.getOps<linalg::GenericOp>())
    generics.push_back(generic);
}

Value KernelEmitter::outputOf(Value tensor) const {
  for (auto [value, buffer] : results)
    if (value == tensor)
      return buffer;
  return {};
}

Value KernelEmitter::index(int64_t value) {
  Value &constant = indexConstants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    constant = arith::ConstantIndexOp::create(b, value);
  }
  return constant;
}

Value KernelEmitter::add(Value lhs, Value rhs) {
  if (matchPattern(lhs, m_Zero()))
    return rhs;
  if (matchPattern(rhs, m_Zero()))
    return lhs;
  return arith::AddIOp::create(b, lhs, rhs, arith::IntegerOverflowFlags::nsw);
}
Value KernelEmitter::mul(Value lhs, int64_t rhs) {
  if (rhs == 1 || matchPattern(lhs, m_Zero()))
    return lhs;
  return arith::MulIOp::create(b, lhs, index(rhs), arith::IntegerOverflowFlags::nsw);
}
Value KernelEmitter::min(Value lhs, Value rhs) { return arith::MinSIOp::create(b, lhs, rhs); }

Value KernelEmitter::scratch(int64_t elements, Type elementType) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return memref::AllocaOp::create(b, MemRefType::get(elements, storedType(elementType, b)),
                                  b.getI64IntegerAttr(64));
}

Indices KernelEmitter::pushCounter(Value linear, ArrayRef<int64_t> sizes) {
  Counter counter;
  counter.linear = linear;
  counter.sizes.assign(sizes);
  counter.parts.resize(sizes.size());
  // From the last dimension on; what is left is the first that is not 1.
  int64_t left = 0;
  for (auto [dim, size] : llvm::enumerate(sizes))
    left += size != 1;
  Value rest = linear;
  for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
    if (sizes[dim] == 1) {
      counter.parts[dim] = index(0);
    } else if (--left == 0) {
      counter.parts[dim] = rest;
    } else {
      counter.parts[dim] = arith::RemUIOp::create(b, rest, index(sizes[dim]));
      rest = arith::DivUIOp::create(b, rest, index(sizes[dim]));
    }
  }
  counters.push_back(counter);
  return counter.parts;
}

Value KernelEmitter::address(ArrayRef<int64_t> shape, ValueRange indices) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  Value result = index(0);
  for (size_t dim = 0; dim < shape.size();) {
    // The whole counter, where its dimensions lie side by side here.
    size_t taken = 0;
    for (const Counter &counter : counters) {
      size_t count = counter.parts.size();
      if (count < 2 || dim + count > shape.size() || shape.slice(dim, count) != ArrayRef(counter.sizes) ||
          !llvm::equal(indices.slice(dim, count), counter.parts))
        continue;
      result = add(result, mul(counter.linear, strides[dim + count - 1]));
      taken = count;
      break;
    }
    if (!taken) {
      if (shape[dim] != 1)
        result = add(result, mul(indices[dim], strides[dim]));
      taken = 1;
    }
    dim += taken;
  }
  return result;
}

Value KernelEmitter::load(Value buffer, Value address, Type elementType) {
  Value value = memref::LoadOp::create(b, buffer, address);
  return elementType.isInteger(1) ? Value(arith::TruncIOp::create(b, elementType, value)) : value;
}

void KernelEmitter::store(Value value, Value buffer, Value address) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  if (stored != value.getType())
    value = arith::ExtUIOp::create(b, stored, value);
  memref::StoreOp::create(b, value, buffer, address);
}

void KernelEmitter::settle(Value tensor, Value buffer, int64_t firstDim) {
  buffers[tensor] = buffer;
  firstDims[tensor] = firstDim;
}

Value KernelEmitter::element(Value tensor, ValueRange indices) {
  if (Value scalar = held.lookup(tensor))
    return scalar;
  RankedTensorType type = tensorType(tensor);
  DenseElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)))
    return arith::ConstantOp::create(b, cast<TypedAttr>(constant.getSplatValue<Attribute>()));
  std::pair<void *, SmallVector<void *>> key{tensor.getAsOpaquePointer(), {}};
  for (Value index : indices)
    key.second.push_back(index.getAsOpaquePointer());
  if (auto it = known.find(key); it != known.end())
    return it->second;
  Value value;
  if (Value buffer = buffers.lookup(tensor)) {
    int64_t first = firstDims.lookup(tensor);
    value = load(buffer, address(type.getShape().drop_front(first), indices.drop_front(first)),
                 type.getElementType());
  } else if (auto extended = tensor.getDefiningOp<arith::ExtFOp>()) {
    value = arith::ExtFOp::create(b, type.getElementType(), element(extended.getIn(), indices));
  } else {
    // Elementwise: the result's indices are the loops.
    auto generic = tensor.getDefiningOp<linalg::GenericOp>();
    SmallVector<Value> values = payload(generic, indices, {});
    for (auto [result, scalar] : llvm::zip_equal(generic.getResults(), values)) {
      key.first = Value(result).getAsOpaquePointer();
      known[key] = scalar;
    }
    return values[cast<OpResult>(tensor).getResultNumber()];
  }
  known[key] = value;
  return value;
}

/// Copies an operation of a payload. No other flag than this one: what is computed again, in another loop
/// or kernel, has the same bits.
Value KernelEmitter::cloned(Operation *op, IRMapping &mapping, Value total) {
  Operation *copy = b.clone(*op, mapping);
  // A sum over a row of fixed length may be added in any fixed order.
  if (auto sum = dyn_cast<arith::AddFOp>(copy);
      sum && reassociates && total && llvm::is_contained(copy->getOperands(), total))
    sum.setFastmath(arith::FastMathFlags::reassoc);
  return copy->getResult(0);
}

void KernelEmitter::mapOuterConstants(Block *body, IRMapping &mapping) {
  for (Operation &op : *body)
    for (Value operand : op.getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || source->getBlock() == body || mapping.contains(operand))
        continue;
      std::optional<int64_t> constant = getConstantIntValue(operand);
      if (constant && operand.getType().isIndex())
        mapping.map(operand, index(*constant));
      else if (matchPattern(source, m_Constant()) && !isa<ShapedType>(operand.getType()))
        mapping.map(operand, b.clone(*source)->getResult(0));
    }
}

SmallVector<Value> KernelEmitter::payload(linalg::GenericOp generic, ValueRange loops, ValueRange totals) {
  Block *body = generic.getBody();
  IRMapping mapping;
  unsigned inputs = generic.getNumDpsInputs();
  for (unsigned i = 0; i < inputs; ++i) {
    if (body->getArgument(i).use_empty())
      continue;
    OpOperand *operand = generic.getDpsInputOperand(i);
    Indices indices;
    for (AffineExpr expr : generic.getMatchingIndexingMap(operand).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      indices.push_back(dim ? loops[dim.getPosition()] : index(cast<AffineConstantExpr>(expr).getValue()));
    }
    mapping.map(body->getArgument(i), element(operand->get(), indices));
  }
  for (auto [i, total] : llvm::enumerate(totals))
    mapping.map(body->getArgument(inputs + i), total);
  mapOuterConstants(body, mapping);
  Value total = totals.empty() ? Value() : totals.front();
  for (Operation &op : body->without_terminator()) {
    if (auto loopIndex = dyn_cast<linalg::IndexOp>(op)) {
      mapping.map(loopIndex.getResult(), loops[loopIndex.getDim()]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      Indices indices;
      for (Value index : extract.getIndices())
        indices.push_back(mapping.lookupOrDefault(index));
      mapping.map(extract.getResult(), element(extract.getTensor(), indices));
    } else if (std::optional<int64_t> constant; matchPattern(&op, m_Constant()) &&
                                                (constant = getConstantIntValue(op.getResult(0))) &&
                                                op.getResult(0).getType().isIndex()) {
      mapping.map(op.getResult(0), index(*constant));
    } else {
      cloned(&op, mapping, total);
    }
  }
  SmallVector<Value> values;
  for (Value value : body->getTerminator()->getOperands())
    values.push_back(mapping.lookup(value));
  return values;
}

Value KernelEmitter::combine(linalg::GenericOp generic, Value total, Value value) {
  Block *body = generic.getBody();
  IRMapping mapping;
  mapping.map(body->getArgument(0), value);
  mapping.map(body->getArgument(1), total);
  mapOuterConstants(body, mapping);
  for (Operation &op : body->without_terminator())
    cloned(&op, mapping, total);
  return mapping.lookup(body->getTerminator()->getOperand(0));
}

Value KernelEmitter::neutral(linalg::GenericOp generic) { return element(generic.getDpsInits()[0], {}); }

SmallVector<Value> KernelEmitter::loop(Value from, Value to, int64_t step, ValueRange carried,
                                       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body,
                                       bool plain) {
  Value stride = index(step);
  auto loop =
      scf::ForOp::create(b, from, to, stride, carried, [](OpBuilder &, Location, Value, ValueRange) {});
  if (plain)
    loop->setAttr(
        "llvm.loop_annotation",
        parseAttribute("#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>>",
                       b.getContext()));
  OpBuilder::InsertionGuard guard(b);
  Block *block = loop.getBody();
  b.setInsertionPointToStart(block);
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(block);
  scf::YieldOp::create(b, next);
  // LLVM takes rounding to bf16 for dear and would use vectors of 4.
  auto rounds = [](Operation &op) { return isa<arith::TruncFOp>(op) && op.getResult(0).getType().isBF16(); };
  if (!plain && llvm::any_of(*block, rounds))
    loop->setAttr("llvm.loop_annotation",
                  parseAttribute("#llvm.loop_annotation<vectorize = <disable = false, width = 16 : i32>>",
                                 b.getContext()));
  return SmallVector<Value>(loop.getResults());
}
} // namespace dsopt
