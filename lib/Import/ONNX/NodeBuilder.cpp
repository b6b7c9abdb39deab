//===- NodeBuilder.cpp - builds what one ONNX node means -------------------===//

#include "NodeBuilder.h"

#include "BoundInputs.h"
#include "Scopes.h"
#include "UpgradeOperators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dsopt::onnx_import {

//===----------------------------------------------------------------------===//
// Emitter
//===----------------------------------------------------------------------===//

bool Emitter::checkShape(ArrayRef<int64_t> shape) {
  if (isSaneShape(shape))
    return true;
  error() << "gives a tensor of dimensions [" << shape
          << "], expected none negative and at most 2^48 elements";
  return false;
}

SmallVector<Value> Emitter::create(StringRef name, ArrayRef<Value> operands, ArrayRef<Type> types,
                                   ArrayRef<NamedAttribute> attributes) {
  for (Type type : types)
    if (!checkShape(cast<RankedTensorType>(type).getShape()))
      return {};
  OperationState state(location, name, operands, types, attributes);
  Operation *op = builder.create(state);
  if (failed(mlir::verify(op, /*verifyRecursively=*/false))) {
    op->erase();
    return {};
  }
  SmallVector<Value> results;
  if (failed(builder.tryFold(op, results)) || results.empty())
    return SmallVector<Value>(op->getResults());
  op->erase();
  for (Value &result : results)
    if (auto constant = result.getDefiningOp<graph::ConstantOp>()) {
      auto [entry, isNew] = constants.try_emplace(constant.getValue(), result);
      if (entry->second == result)
        continue;
      result = entry->second;
      if (constant->use_empty())
        constant.erase();
    }
  return results;
}

Value Emitter::constant(ElementsAttr value) {
  Value &known = constants[value];
  if (!known)
    known = graph::ConstantOp::create(builder, location, value);
  return known;
}

Value Emitter::splat(Type element, double value, ArrayRef<int64_t> shape) {
  if (!checkShape(shape))
    return {};
  auto type = RankedTensorType::get(shape, element);
  if (auto real = dyn_cast<FloatType>(element)) {
    llvm::APFloat number(value);
    bool lost;
    number.convert(real.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return constant(DenseElementsAttr::get(type, number));
  }
  return constant(DenseElementsAttr::get(type, llvm::APInt(element.getIntOrFloatBitWidth(), (int64_t)value,
                                                           /*isSigned=*/true, /*implicitTrunc=*/true)));
}

Value Emitter::integers(ArrayRef<int64_t> values) {
  return constant(
      DenseElementsAttr::get(RankedTensorType::get((int64_t)values.size(), builder.getI64Type()), values));
}

Value Emitter::bools(ArrayRef<bool> values, ArrayRef<int64_t> shape) {
  return constant(DenseElementsAttr::get(RankedTensorType::get(shape, builder.getI1Type()), values));
}

Value Emitter::reshape(Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  return shaped<graph::ReshapeOp>(value, shape);
}

Value Emitter::expand(Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  return shaped<graph::ExpandOp>(value, shape);
}

Value Emitter::convert(Value value, Type element) {
  if (!value || elementOf(value) == element)
    return value;
  return shaped<graph::CastOp>(value, shapeOf(value), element);
}

/// Whether every element of a value is one of the type's.
bool Emitter::holds(Value value, Type narrow) {
  Operation *op = value.getDefiningOp();
  if (exact.contains({value, narrow}))
    return true;
  if (!op)
    return false;
  if (auto round = dyn_cast<graph::RoundToOp>(op))
    return round.getTo() == narrow;
  if (auto cast = dyn_cast<graph::CastOp>(op)) {
    Type from = elementOf(cast.getInput());
    return from == narrow || (from.isInteger(1) && !isa<Float8E8M0FNUType>(narrow)); // which has no 0
  }
  // What only moves or chooses among elements.
  bool chooses = isa<graph::ReshapeOp, graph::ExpandOp, graph::TransposeOp, graph::SliceOp, graph::ConcatOp,
                     graph::GatherOp, graph::GatherElementsOp, graph::WhereOp, graph::MinOp, graph::MaxOp,
                     graph::NegOp, graph::AbsOp, graph::ReluOp, graph::ReduceMaxOp, graph::ReduceMinOp>(op);
  return chooses && llvm::all_of(op->getOperands(), [&](Value operand) {
           return !isa<FloatType>(elementOf(operand)) || holds(operand, narrow);
         });
}

Value Emitter::read(const Binding &binding) {
  graph::ParameterOp parameter = binding.parameter;
  Value value = graph::ReadOp::create(builder, location, parameter.getType(),
                                      FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  return binding.narrow ? rounded(value, binding.narrow) : value;
}

Value Emitter::rounded(Value value, Type narrow, Rounding rounding) {
  if (!value || narrow == modelType || holds(value, narrow))
    return value;
  Value result;
  if (auto integer = dyn_cast<IntegerType>(narrow)) {
    result = wrapped(value, integer);
  } else {
    SmallVector<NamedAttribute> attributes = {attr("to", TypeAttr::get(narrow))};
    if (rounding.saturate)
      attributes.push_back(flag("saturate"));
    if (!rounding.toward.empty())
      attributes.push_back(attr("toward", builder.getStringAttr(rounding.toward)));
    result = make<graph::RoundToOp>(value, attributes);
  }
  if (result)
    exact.insert({result, narrow});
  return result;
}

Value Emitter::wrapped(Value value, IntegerType narrow) {
  Type element = elementOf(value);
  int64_t values = int64_t(1) << narrow.getWidth();
  Value below = splat(element, narrow.isUnsigned() ? 0 : (double)values / 2),
        mask = splat(element, values - 1);
  return sub(make<graph::AndOp>({add(value, below), mask}), below);
}

Value Emitter::transpose(Value value, ArrayRef<int64_t> permutation) {
  return make<graph::TransposeOp>(value, attr("perm", permutation));
}

Value Emitter::slice(Value value, int64_t axis, int64_t start, int64_t size) {
  if (!value)
    return {};
  SmallVector<int64_t> starts(rankOf(value), 0), sizes(shapeOf(value)), steps(rankOf(value), 1);
  starts[axis] = start;
  sizes[axis] = size;
  return make<graph::SliceOp>(value, {attr("starts", starts), attr("sizes", sizes), attr("steps", steps)});
}

/// The operand of a transpose of the last two dimensions of `value`.
static Value transposedFrom(Value value) {
  auto transpose = value.getDefiningOp<graph::TransposeOp>();
  if (!transpose)
    return {};
  ArrayRef<int64_t> perm = transpose.getPerm();
  int64_t rank = perm.size();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (perm[i] != i)
      return {};
  return rank >= 2 && perm[rank - 2] == rank - 1 ? transpose.getInput() : Value();
}

Value Emitter::matmul(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return {};
  bool isLhsVector = rankOf(lhs) == 1, isRhsVector = rankOf(rhs) == 1;
  if (rankOf(lhs) == 0 || rankOf(rhs) == 0) {
    error() << "multiplies " << typeOf(lhs) << " by " << typeOf(rhs)
            << ", expected tensors of rank 1 or more";
    return {};
  }
  if (isLhsVector)
    lhs = reshape(lhs, {1, shapeOf(lhs)[0]});
  if (isRhsVector)
    rhs = reshape(rhs, {shapeOf(rhs)[0], 1});

  SmallVector<int64_t> batch(shapeOf(lhs).drop_back(2));
  int64_t rows = shapeOf(lhs)[rankOf(lhs) - 2], inner = shapeOf(lhs).back(), columns = shapeOf(rhs).back();
  if (inner != shapeOf(rhs)[rankOf(rhs) - 2]) {
    error() << "multiplies " << typeOf(lhs) << " by " << typeOf(rhs)
            << ", expected as many columns on the left as rows on the right";
    return {};
  }
  SmallVector<NamedAttribute> flags;
  auto takeTranspose = [&] {
    if (Value source = transposedFrom(rhs)) {
      rhs = source;
      flags.push_back(flag("transpose_b"));
    }
  };
  Value product;
  if (rankOf(rhs) == 2) {
    // One product of all rows.
    int64_t all = rows;
    for (int64_t size : batch)
      all *= size;
    lhs = reshape(lhs, {all, inner});
    takeTranspose();
    product = make<graph::MatMulOp>({lhs, rhs}, flags);
  } else {
    auto common = graph::broadcastShapes(batch, shapeOf(rhs).drop_back(2));
    if (failed(common)) {
      error() << "multiplies " << typeOf(lhs) << " by " << typeOf(rhs)
              << ", expected leading dimensions that broadcast";
      return {};
    }
    batch = *common;
    auto withBatch = [&](Value value) {
      SmallVector<int64_t> shape(batch);
      llvm::append_range(shape, shapeOf(value).take_back(2));
      return expand(value, shape);
    };
    lhs = withBatch(lhs);
    rhs = withBatch(rhs);
    if (lhs && rhs) {
      takeTranspose();
      product = make<graph::MatMulOp>({lhs, rhs}, flags);
    }
  }
  SmallVector<int64_t> shape(batch);
  if (!isLhsVector)
    shape.push_back(rows);
  if (!isRhsVector)
    shape.push_back(columns);
  return reshape(product, shape);
}

Value Emitter::counting(Type element, int64_t size, int64_t dim, int64_t rank) {
  SmallVector<int64_t> shape(rank, 1), values;
  shape[dim] = size;
  if (!checkShape(shape) || size > (1 << 24)) {
    if (size > (1 << 24))
      error() << "counts to " << size << ", expected at most 2^24";
    return {};
  }
  for (int64_t i = 0; i < size; ++i)
    values.push_back(i);
  auto type = RankedTensorType::get(shape, builder.getI64Type());
  return convert(constant(DenseElementsAttr::get(type, ArrayRef<int64_t>(values))), element);
}

Value Emitter::band(int64_t rows, int64_t columns, std::optional<int64_t> lowest,
                    std::optional<int64_t> highest) {
  constexpr int64_t kMostStored = 1 << 24;
  if (columns == 0 || rows <= kMostStored / columns) {
    SmallVector<bool> within;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        within.push_back((!lowest || j - i >= *lowest) && (!highest || j - i <= *highest));
    return bools(within, {rows, columns});
  }
  Type i64 = builder.getI64Type();
  Value row = counting(i64, rows, 0, 2), column = counting(i64, columns, 1, 2);
  Value above = lowest ? make<graph::LessEqualOp>({add(row, splat(i64, *lowest)), column}) : Value();
  Value below = highest ? make<graph::LessEqualOp>({column, add(row, splat(i64, *highest))}) : Value();
  return above && below ? make<graph::AndOp>({above, below}) : above ? above : below;
}

Value Emitter::moveAxis(Value value, int64_t from, int64_t to) {
  if (!value || from == to)
    return value;
  SmallVector<int64_t> perm;
  for (int64_t dim = 0; dim < rankOf(value); ++dim)
    if (dim != from)
      perm.push_back(dim);
  perm.insert(perm.begin() + to, from);
  return transpose(value, perm);
}

Value Emitter::countedFromFront(Value indices, int64_t size) {
  Value wide = convert(indices, builder.getI64Type());
  return wide ? where(less(wide, scalar(0, wide)), add(wide, scalar(size, wide)), wide) : Value();
}

//===----------------------------------------------------------------------===//
// NodeBuilder: inputs and outputs
//===----------------------------------------------------------------------===//

Value NodeBuilder::input(int index) {
  if (!has(index)) {
    error() << "has no input " << index << ", expected one";
    return {};
  }
  return read(bindings[node.input(index)], node.input(index));
}

Value NodeBuilder::read(const Binding &binding, StringRef name) {
  if (binding.sequence) {
    error() << "reads sequence '" << name << "' where a tensor is expected";
    return {};
  }
  if (binding.parameter)
    return e.read(binding);
  if (!binding.value)
    error() << "reads '" << name << "', an output that is not available";
  return binding.value;
}

FailureOr<Binding> NodeBuilder::binding(int index) {
  if (!has(index))
    return error() << "has no input " << index << ", expected one";
  return bindings[node.input(index)];
}

void NodeBuilder::bind(int output, Binding binding) {
  if (wants(output))
    bindings[node.output(output)] = std::move(binding);
}

std::vector<std::string> NodeBuilder::captured() const {
  onnx::NodeProto subgraphs = node;
  subgraphs.clear_input();
  return readsOf(subgraphs);
}

const onnx::GraphProto *NodeBuilder::graph(StringRef name, int inputs) {
  const onnx::AttributeProto *found = attribute(name);
  if (!found || !found->has_g()) {
    error() << "has no graph '" << name << "', expected one";
    return nullptr;
  }
  if (found->g().input_size() != inputs) {
    error() << "has a graph '" << name << "' of " << found->g().input_size() << " inputs, expected "
            << inputs;
    return nullptr;
  }
  return &found->g();
}

DenseElementsAttr NodeBuilder::constant(int index, StringRef what, StringRef remedy) {
  Value value = input(index);
  DenseElementsAttr elements;
  if (value && !matchPattern(value, m_Constant(&elements)))
    error() << "has " << what << " ('" << node.input(index)
            << "') that depends on data or parameters, expected a constant"
            << (remedy.empty() ? howToBind(value, node.input(index)) : (": " + remedy).str());
  return elements;
}

std::optional<SmallVector<int64_t>> constantIntegers(Value value) {
  DenseElementsAttr elements;
  if (!value || !matchPattern(value, m_Constant(&elements)))
    return std::nullopt;
  auto type = dyn_cast<IntegerType>(elements.getElementType());
  if (!type || elements.getNumElements() > (1 << 24))
    return std::nullopt;
  SmallVector<int64_t> values;
  values.reserve(elements.getNumElements());
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  for (const APInt &element : elements.getValues<APInt>())
    values.push_back(isUnsigned ? (int64_t)element.getZExtValue() : element.getSExtValue());
  return values;
}

FailureOr<SmallVector<int64_t>> NodeBuilder::integers(int index, StringRef what, StringRef remedy) {
  DenseElementsAttr elements = constant(index, what, remedy);
  if (!elements)
    return failure();
  auto values = constantIntegers(e.constant(elements));
  if (!values || elements.getType().getRank() > 1)
    return error() << "has " << what << " of type " << elements.getType() << ", expected a list of integers";
  return *values;
}

FailureOr<int64_t> NodeBuilder::integer(int index, StringRef what) {
  FailureOr<SmallVector<int64_t>> values = integers(index, what);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return error() << "has " << values->size() << " integers as " << what << ", expected one";
  return values->front();
}

const std::vector<Value> *NodeBuilder::sequence(int index) {
  if (!has(index) || !bindings[node.input(index)].sequence) {
    error() << "has no sequence as input " << index << ", expected one";
    return nullptr;
  }
  return &*bindings[node.input(index)].sequence;
}

Type NodeBuilder::narrowByInputs() const {
  for (const std::string &name : node.input()) {
    auto found = name.empty() ? bindings.end() : bindings.find(name);
    if (found == bindings.end())
      continue;
    Binding &binding = found->second;
    Type type = binding.parameter ? binding.parameter.getType() : Type();
    if (binding.sequence)
      type = binding.sequence->empty() ? Type() : binding.sequence->front().getType();
    else if (binding.value)
      type = binding.value.getType();
    if (binding.narrow || (type && isa<FloatType>(getElementTypeOrSelf(type))))
      return binding.narrow;
  }
  return {};
}

LogicalResult NodeBuilder::set(int output, Value value) { return set(output, value, narrowByInputs()); }

LogicalResult NodeBuilder::set(int output, DenseElementsAttr constant) {
  Type element = constant.getElementType();
  return isNarrow(element) ? set(output, e.constant(widened(constant)), element)
                           : set(output, e.constant(constant));
}

LogicalResult NodeBuilder::set(int output, Value value, Type narrow, Rounding rounding) {
  if (!value)
    return failure();
  // Elsewhere the type is what an attribute says.
  if (Type element = Emitter::elementOf(value); isNarrow(element)) {
    narrow = element;
    value = e.convert(value, computedType(element));
  }
  if (narrow && Emitter::elementOf(value) != computedType(narrow))
    narrow = {};
  if (narrow)
    value = e.rounded(value, narrow, rounding);
  if (!value)
    return failure();
  if (wants(output))
    bindings[node.output(output)] = {value, {}, {}, narrow};
  return success();
}

LogicalResult NodeBuilder::set(int output, std::vector<Value> sequence) {
  if (llvm::is_contained(sequence, Value()))
    return failure();
  if (wants(output))
    bindings[node.output(output)] = {{}, {}, std::move(sequence), narrowByInputs()};
  return success();
}

LogicalResult NodeBuilder::alias(int index) {
  FailureOr<Binding> source = binding(index);
  if (failed(source))
    return failure();
  bind(0, std::move(*source));
  return success();
}

//===----------------------------------------------------------------------===//
// NodeBuilder: attributes
//===----------------------------------------------------------------------===//

bool NodeBuilder::isUpgraded() const { return !metadataOf(node, kUpgradedKey).empty(); }

StringRef NodeBuilder::torchOperator() const {
  if (StringRef own = metadataOf(node, kOperatorKey); !own.empty())
    return own;
  // "%y : ... = call_function[target=torch.ops.aten.clamp_min.default](...)"
  StringRef call = metadataOf(node, "pkg.torch.onnx.fx_node").split("torch.ops.aten.").second;
  return call.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
}

const onnx::AttributeProto *NodeBuilder::attribute(StringRef name) const {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t NodeBuilder::integerAttr(StringRef name, int64_t byDefault) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? found->i() : byDefault;
}

double NodeBuilder::floatAttr(StringRef name, double byDefault) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? found->f() : byDefault;
}

StringRef NodeBuilder::stringAttr(StringRef name, StringRef byDefault) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? StringRef(found->s()) : byDefault;
}

SmallVector<int64_t> NodeBuilder::integersAttr(StringRef name) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? SmallVector<int64_t>(found->ints().begin(), found->ints().end()) : SmallVector<int64_t>();
}

SmallVector<double> NodeBuilder::floatsAttr(StringRef name) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? SmallVector<double>(found->floats().begin(), found->floats().end()) : SmallVector<double>();
}

SmallVector<StringRef> NodeBuilder::stringsAttr(StringRef name) const {
  const onnx::AttributeProto *found = attribute(name);
  return found ? SmallVector<StringRef>(found->strings().begin(), found->strings().end())
               : SmallVector<StringRef>();
}

FailureOr<SmallVector<int64_t>> NodeBuilder::integersAttr(StringRef name, size_t count, int64_t byDefault) {
  if (!attribute(name))
    return SmallVector<int64_t>(count, byDefault);
  SmallVector<int64_t> values = integersAttr(name);
  if (values.size() != count)
    return error() << "has " << name << " of [" << values << "], expected " << count << " integers";
  return values;
}

FailureOr<SmallVector<double>> NodeBuilder::floats(int index, StringRef what) {
  DenseElementsAttr elements = constant(index, what);
  if (!elements)
    return failure();
  if (!isa<FloatType>(elements.getElementType()) || elements.getNumElements() > (1 << 24))
    return error() << "has " << what << " of type " << elements.getType() << ", expected floats";
  SmallVector<double> values;
  for (APFloat number : elements.getValues<APFloat>()) {
    bool lost;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    values.push_back(number.convertToDouble());
  }
  return values;
}

FailureOr<int64_t> NodeBuilder::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error() << "has axis " << axis << " for a tensor of rank " << rank << ", expected " << -rank
                   << " to " << rank - 1;
  return axis < 0 ? axis + rank : axis;
}

FailureOr<std::optional<SmallVector<int64_t>>> NodeBuilder::axes(int index, int64_t inputSince,
                                                                 int64_t rank) {
  SmallVector<int64_t> given;
  if (opset >= inputSince) {
    if (!has(index))
      return std::optional<SmallVector<int64_t>>();
    FailureOr<SmallVector<int64_t>> values = integers(index, "axes");
    if (failed(values))
      return failure();
    given = *values;
  } else {
    if (!attribute("axes"))
      return std::optional<SmallVector<int64_t>>();
    given = integersAttr("axes");
  }
  for (int64_t &entry : given) {
    FailureOr<int64_t> counted = axis(entry, rank);
    if (failed(counted))
      return failure();
    entry = *counted;
  }
  llvm::sort(given);
  given.erase(std::unique(given.begin(), given.end()), given.end());
  return std::optional<SmallVector<int64_t>>(given);
}

} // namespace dsopt::onnx_import
