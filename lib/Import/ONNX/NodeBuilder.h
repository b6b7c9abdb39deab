//===- NodeBuilder.h - builds what one ONNX node means -----------*- C++ -*-===//
//
// What the rows of the operator table work with. Values are null after an error,
// which was reported then; whatever takes a null value returns null, so a row
// needs to look only where it reads a value's type.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_NODEBUILDER_H
#define DSOPT_LIB_IMPORT_ONNX_NODEBUILDER_H

#include "Initializers.h"
#include "Tensors.h"

#include <optional>

namespace dsopt::onnx_import {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::StringRef;
using mlir::Type;
using mlir::Value;

/// What a name of the model stands for.
struct Binding {
  Value value;
  /// Read anew by each user.
  graph::ParameterOp parameter;
  /// The elements, if it is a sequence. Sequences never enter the IR.
  std::optional<std::vector<Value>> sequence;
  /// The model's element type, where the value is computed in another (Tensors.h: computedType).
  Type narrow = {};
  /// Why there is none, if something went wrong: said by whatever reads it.
  std::string problem = {};
};
using Bindings = llvm::StringMap<Binding>;

/// What becomes of values that a narrow type does not hold, as graph.round_to has it.
struct Rounding {
  bool saturate = false;
  StringRef toward = "";
};

/// Emits operations: infers types, folds, and shares equal constants.
class Emitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location location) : builder(builder), location(location) {}

  mlir::OpBuilder builder;
  mlir::Location location;
  /// Random operations emitted so far; their numbers tell them apart.
  int64_t randoms = 0;
  /// What each micro-batch contributes to a running statistic.
  struct Statistic {
    graph::ParameterOp parameter;
    Value value;
    double momentum;
    /// Whether forward reads what the micro-batch before it left.
    bool sequential = false;
    /// The names of the normalization's scale, bias, mean and variance.
    std::array<std::string, 4> normalization;
  };
  std::vector<Statistic> statistics;
  /// Batch normalizations with running statistics that stay as they are.
  int64_t frozenNorms = 0;
  /// Dropouts of an opset in which none is in training.
  int64_t oldDropouts = 0;
  /// The type that the model's parameters have, if it is f16 or bf16: then it says how the model is stored,
  /// and values of it are not rounded.
  Type modelType;

  mlir::InFlightDiagnostic error() { return mlir::emitError(location); }

  /// The results of an `Op` whose types follow from its operands; empty after an error.
  template <typename Op>
  SmallVector<Value> makeAll(ArrayRef<Value> operands, ArrayRef<mlir::NamedAttribute> attributes = {}) {
    if (llvm::is_contained(operands, Value()))
      return {};
    mlir::DictionaryAttr dictionary = builder.getDictionaryAttr(attributes);
    SmallVector<Type> types;
    typename Op::Properties properties;
    mlir::OpaqueProperties opaque(nullptr);
    if constexpr (!std::is_same_v<typename Op::Properties, mlir::EmptyProperties>) {
      if (failed(Op::setPropertiesFromAttr(properties, dictionary, [&] { return error(); })))
        return {};
      opaque = mlir::OpaqueProperties(&properties);
    }
    if (failed(Op::inferReturnTypes(builder.getContext(), location, operands, dictionary, opaque, {}, types)))
      return {};
    return create(Op::getOperationName(), operands, types, attributes);
  }
  template <typename Op>
  Value make(ArrayRef<Value> operands, ArrayRef<mlir::NamedAttribute> attributes = {}) {
    SmallVector<Value> results = makeAll<Op>(operands, attributes);
    return results.empty() ? Value() : results.front();
  }
  /// The result of an `Op` whose result shape is the caller's choice.
  template <typename Op> Value shaped(Value operand, ArrayRef<int64_t> shape, Type element = {}) {
    return shapedWith<Op>(operand, shape, {}, element);
  }
  template <typename Op>
  Value shapedWith(ArrayRef<Value> operands, ArrayRef<int64_t> shape,
                   ArrayRef<mlir::NamedAttribute> attributes, Type element = {}) {
    if (llvm::is_contained(operands, Value()) || !checkShape(shape))
      return {};
    if (!element)
      element = elementOf(operands.front());
    SmallVector<Value> results =
        create(Op::getOperationName(), operands, RankedTensorType::get(shape, element), attributes);
    return results.empty() ? Value() : results.front();
  }

  mlir::NamedAttribute attr(StringRef name, mlir::Attribute value) {
    return builder.getNamedAttr(name, value);
  }
  mlir::NamedAttribute attr(StringRef name, int64_t value) {
    return attr(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute attr(StringRef name, ArrayRef<int64_t> values) {
    return attr(name, builder.getDenseI64ArrayAttr(values));
  }
  mlir::NamedAttribute flag(StringRef name) { return attr(name, builder.getUnitAttr()); }

  Value constant(mlir::ElementsAttr value);
  /// A tensor of `shape` that holds `value` everywhere, as `element`.
  Value splat(Type element, double value, ArrayRef<int64_t> shape = {});
  Value integers(ArrayRef<int64_t> values);
  Value bools(ArrayRef<bool> values, ArrayRef<int64_t> shape);

  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value expand(Value value, ArrayRef<int64_t> shape);
  Value convert(Value value, Type element);
  /// The present value of a parameter.
  Value read(const Binding &binding);
  /// A value as the model's type `narrow`, which is computed in a wider one, holds it.
  Value rounded(Value value, Type narrow, Rounding rounding = {});
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value slice(Value value, int64_t axis, int64_t start, int64_t size);
  /// A product by the rules of graph.matmul, operands of any rank as in ONNX.
  Value matmul(Value lhs, Value rhs);
  Value concat(ArrayRef<Value> values, int64_t axis) {
    return make<graph::ConcatOp>(values, attr("axis", axis));
  }
  Value gather(Value data, Value indices, int64_t axis) {
    return make<graph::GatherOp>({data, indices}, attr("axis", axis));
  }

  Value add(Value lhs, Value rhs) { return make<graph::AddOp>({lhs, rhs}); }
  Value sub(Value lhs, Value rhs) { return make<graph::SubOp>({lhs, rhs}); }
  Value mul(Value lhs, Value rhs) { return make<graph::MulOp>({lhs, rhs}); }
  Value div(Value lhs, Value rhs) { return make<graph::DivOp>({lhs, rhs}); }
  Value minimum(Value lhs, Value rhs) { return make<graph::MinOp>({lhs, rhs}); }
  Value maximum(Value lhs, Value rhs) { return make<graph::MaxOp>({lhs, rhs}); }
  Value lessEqual(Value lhs, Value rhs) { return make<graph::LessEqualOp>({lhs, rhs}); }
  /// Bounds by numbers: what is at its bound has no gradient, as PyTorch's clamp has it.
  Value atLeast(Value value, Value bound) { return where(lessEqual(value, bound), bound, value); }
  Value atMost(Value value, Value bound) { return where(lessEqual(bound, value), bound, value); }
  Value less(Value lhs, Value rhs) { return make<graph::LessOp>({lhs, rhs}); }
  Value equal(Value lhs, Value rhs) { return make<graph::EqualOp>({lhs, rhs}); }
  Value where(Value condition, Value lhs, Value rhs) { return make<graph::WhereOp>({condition, lhs, rhs}); }
  template <typename Op> Value reduce(Value value, ArrayRef<int64_t> axes, bool keepdims = true) {
    SmallVector<mlir::NamedAttribute> attributes{attr("axes", axes)};
    if (keepdims)
      attributes.push_back(flag("keepdims"));
    return make<Op>(value, attributes);
  }
  Value sum(Value value, ArrayRef<int64_t> axes, bool keepdims = true) {
    return reduce<graph::ReduceSumOp>(value, axes, keepdims);
  }
  Value mean(Value value, ArrayRef<int64_t> axes, bool keepdims = true) {
    return reduce<graph::ReduceMeanOp>(value, axes, keepdims);
  }
  /// A number of the element type of `like`.
  Value scalar(double value, Value like) { return like ? splat(elementOf(like), value) : Value(); }
  /// 0, 1, 2 and so on along dimension `dim` of `shape`, whose other dimensions are 1.
  Value counting(Type element, int64_t size, int64_t dim, int64_t rank);
  /// Which elements of a matrix lie within a band of its diagonals: how much further the column is than the
  /// row is neither below `lowest` nor above `highest`, of which one may be missing. Large ones are counted,
  /// not stored.
  Value band(int64_t rows, int64_t columns, std::optional<int64_t> lowest, std::optional<int64_t> highest);
  /// With the dimension `from` moved to `to`, the others in order.
  Value moveAxis(Value value, int64_t from, int64_t to);
  /// Indices along a dimension of `size`, negative ones counted from the end; as i64.
  Value countedFromFront(Value indices, int64_t size);

  static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }
  static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }
  static int64_t rankOf(Value value) { return typeOf(value).getRank(); }
  static Type elementOf(Value value) { return typeOf(value).getElementType(); }

  /// While it lives, operations go into another block, which shares no constants with this one.
  class Elsewhere {
  public:
    Elsewhere(Emitter &emitter, mlir::Block &block) : emitter(emitter), guard(emitter.builder) {
      emitter.builder.setInsertionPointToEnd(&block);
      std::swap(emitter.constants, constants);
    }
    ~Elsewhere() { std::swap(emitter.constants, constants); }

  private:
    Emitter &emitter;
    mlir::OpBuilder::InsertionGuard guard;
    llvm::DenseMap<mlir::Attribute, Value> constants;
  };

private:
  bool holds(Value value, Type narrow);
  /// An integer's lowest bits, as many as `narrow` has.
  Value wrapped(Value value, mlir::IntegerType narrow);
  SmallVector<Value> create(StringRef name, ArrayRef<Value> operands, ArrayRef<Type> types,
                            ArrayRef<mlir::NamedAttribute> attributes);
  bool checkShape(ArrayRef<int64_t> shape);

  llvm::DenseMap<mlir::Attribute, Value> constants;
  /// Values that a narrower type holds as they are.
  llvm::DenseSet<std::pair<Value, Type>> exact;
};

/// Builds the nodes of a subgraph with these inputs, and returns its outputs; fails with an error.
class SubgraphBuilder {
public:
  virtual ~SubgraphBuilder() = default;
  virtual mlir::FailureOr<SmallVector<Binding>> buildSubgraph(const onnx::GraphProto &graph,
                                                              ArrayRef<Binding> inputs) = 0;
  /// Binds the initializers that a node's subgraphs read, before one of them is built.
  virtual LogicalResult bindCaptured(const onnx::NodeProto &node) = 0;
};

/// One node of the model.
class NodeBuilder {
public:
  NodeBuilder(Emitter &emitter, Bindings &bindings, const onnx::NodeProto &node, int64_t opset,
              const ImportOptions &options, SubgraphBuilder &subgraphs)
      : e(emitter), opset(opset), options(options), node(node), bindings(bindings), subgraphs(subgraphs) {}

  Emitter &e;
  const int64_t opset;
  const ImportOptions &options;

  StringRef op() const { return node.op_type(); }
  /// The operator of PyTorch that the node was made from, without namespace and overload ("clamp_min"), where
  /// the file says so: several become one operator of ONNX with different gradients.
  StringRef torchOperator() const;
  /// Whether the node has another form in the file, of an older opset.
  bool isUpgraded() const;
  mlir::InFlightDiagnostic error() { return e.error(); }

  int numInputs() const { return node.input_size(); }
  int numOutputs() const { return node.output_size(); }
  StringRef inputName(int input) const { return has(input) ? StringRef(node.input(input)) : StringRef(); }
  bool has(int input) const { return input < node.input_size() && !node.input(input).empty(); }
  bool wants(int output) const { return output < node.output_size() && !node.output(output).empty(); }

  /// An input's value; null with an error where it is missing or a sequence.
  Value input(int index);
  /// The model's element type of an input, where that is f16 or bf16.
  Type narrow(int index) const {
    auto binding = has(index) ? bindings.find(node.input(index)) : bindings.end();
    return binding == bindings.end() ? Type() : binding->second.narrow;
  }
  /// The parameter that an input is; null if it is none.
  graph::ParameterOp parameter(int index) const {
    auto binding = has(index) ? bindings.find(node.input(index)) : bindings.end();
    return binding == bindings.end() ? graph::ParameterOp() : binding->second.parameter;
  }
  /// Whether a batch normalization uses the batch's own statistics.
  static bool normalizesByBatch(const onnx::NodeProto &node, int64_t opset, BatchNorm mode);
  bool normalizesByBatch() const { return normalizesByBatch(node, opset, options.batchNorm); }

  /// The constant of an input; null with an error where it depends on data, which says what to do about it.
  mlir::DenseElementsAttr constant(int index, StringRef what, StringRef remedy = "");
  /// A constant list of integers; fails with an error.
  mlir::FailureOr<SmallVector<int64_t>> integers(int index, StringRef what, StringRef remedy = "");
  mlir::FailureOr<int64_t> integer(int index, StringRef what);
  const std::vector<Value> *sequence(int index);

  /// Makes an output stand for a value; fails where that is null. Floats have the model's type of the first
  /// input that has floats, as most operators say, or the type given (null: none that is narrower).
  LogicalResult set(int output, Value value);
  LogicalResult set(int output, Value value, Type narrow, Rounding rounding = {});
  /// The same for a constant of any type of the model's.
  LogicalResult set(int output, mlir::DenseElementsAttr constant);
  LogicalResult set(int output, std::vector<Value> sequence);
  /// Makes the first output another name of an input.
  LogicalResult alias(int input);

  /// The graph of an attribute, checked to have so many inputs; null with an error.
  const onnx::GraphProto *graph(StringRef name, int inputs);
  mlir::FailureOr<SmallVector<Binding>> build(const onnx::GraphProto &graph, ArrayRef<Binding> inputs) {
    return subgraphs.buildSubgraph(graph, inputs);
  }
  LogicalResult bindCaptured() { return subgraphs.bindCaptured(node); }
  /// What an input stands for; fails with an error where it is missing.
  mlir::FailureOr<Binding> binding(int index);
  /// The names that the node's subgraphs read of what is around it, and what each stands for.
  std::vector<std::string> captured() const;
  Binding &outerBinding(StringRef name) { return bindings[name]; }
  /// What a subgraph of the node reads under this name; null with an error where that is no tensor.
  Value outer(StringRef name) { return read(bindings[name], name); }
  /// The same; null where it is a parameter or no tensor.
  Value outerValue(StringRef name) const { return bindings.lookup(name).value; }
  /// The value of a binding; null with an error where that is none.
  Value read(const Binding &binding, StringRef name);
  void bind(int output, Binding binding);

  const onnx::AttributeProto *attribute(StringRef name) const;
  int64_t integerAttr(StringRef name, int64_t byDefault) const;
  double floatAttr(StringRef name, double byDefault) const;
  StringRef stringAttr(StringRef name, StringRef byDefault) const;
  SmallVector<int64_t> integersAttr(StringRef name) const;
  SmallVector<double> floatsAttr(StringRef name) const;
  SmallVector<StringRef> stringsAttr(StringRef name) const;
  /// A list of `count` integers, `byDefault` each where the attribute is absent; fails with an error.
  mlir::FailureOr<SmallVector<int64_t>> integersAttr(StringRef name, size_t count, int64_t byDefault);
  /// The numbers of a constant list of floats; fails with an error.
  mlir::FailureOr<SmallVector<double>> floats(int index, StringRef what);

  /// An axis counted from the front; fails with an error.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  /// The axes of an input or, below opset `inputSince`, of the attribute; none
  /// where neither is there. Ascending, each once.
  mlir::FailureOr<std::optional<SmallVector<int64_t>>> axes(int index, int64_t inputSince, int64_t rank);

private:
  Type narrowByInputs() const;

  const onnx::NodeProto &node;
  Bindings &bindings;
  SubgraphBuilder &subgraphs;
};

/// The elements of a constant of integers or bools.
std::optional<SmallVector<int64_t>> constantIntegers(Value value);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_NODEBUILDER_H
