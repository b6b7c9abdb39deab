//===- InitializerUses.cpp - what unmarked initializers are for ------------===//

#include "InitializerUses.h"

#include "ClosedForms.h"
#include "Tensors.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// What lies below is hidden by a mask that is added.
static constexpr double kHidden = -1e4;
/// An input's mean and deviation have at most so many elements.
static constexpr int64_t kMaxChannels = 16;

static bool isProduct(StringRef op) {
  return op == "MatMul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose";
}

static bool isShiftOrScale(StringRef op) { return op == "Add" || op == "Sub" || op == "Mul" || op == "Div"; }

/// The other operand of an operator of two.
static StringRef otherOf(const Use &use) {
  return use.node->input_size() == 2 ? StringRef(use.node->input(1 - use.input)) : "";
}

/// How many features a product with this weight gives.
static int64_t featuresOf(const onnx::NodeProto &product, const onnx::TensorProto &weight) {
  int rank = weight.dims_size();
  if (rank == 0)
    return 0;
  bool isTurned = false;
  for (const onnx::AttributeProto &attribute : product.attribute())
    isTurned |= attribute.name() == "transB" && attribute.i() != 0;
  if (product.op_type() == "Conv" || isTurned)
    return weight.dims(0);
  return weight.dims(product.op_type() == "ConvTranspose" ? 1 : rank - 1);
}

/// Added to what a product with an initializer gives.
bool InitializerUses::isBias(const Use &use, const onnx::TensorProto &tensor) const {
  if (use.op() != "Add")
    return false;
  const onnx::NodeProto *product = values.producer(values.viewed(otherOf(use)));
  if (!product || !isProduct(product->op_type()))
    return false;
  int64_t elements = numElements(tensor);
  return llvm::any_of(product->input(), [&](const std::string &input) {
    const onnx::TensorProto *weight = values.initializer(input);
    return weight && weight->dims_size() > 1 && (elements > 1 || featuresOf(*product, *weight) == 1);
  });
}

/// The weight of the product that an initializer is the bias of; null where it is none.
const onnx::TensorProto *InitializerUses::weightBeside(const Use &use) const {
  const onnx::NodeProto *product =
      use.op() == "Add" ? values.producer(values.viewed(otherOf(use))) : use.node;
  if (!product || !isProduct(product->op_type()) || (product == use.node && use.input != 2))
    return nullptr;
  for (int i : {1, 0})
    if (i < product->input_size())
      if (const onnx::TensorProto *weight = values.initializer(product->input(i)))
        return weight;
  return nullptr;
}

/// What form the weights have that zeros are added beside; empty where one has none.
StringRef InitializerUses::formBeside(ArrayRef<Use> uses) const {
  StringRef form;
  for (const Use &use : uses) {
    const onnx::TensorProto *weight = weightBeside(use);
    RankedTensorType type = weight ? possibleType(*weight, location.getContext()) : RankedTensorType();
    if (!type || !isa<FloatType>(type.getElementType()))
      return "";
    form = closedForm(type.getShape(), TensorValues(file, *weight, type, location), type.getRank() > 2);
    if (form.empty())
      return "";
  }
  return form;
}

/// Whether a value is one by a root, or a normalization, perhaps scaled since.
bool InitializerUses::isNormalized(StringRef value, int steps) const {
  const onnx::NodeProto *node = values.producer(values.viewed(value));
  if (!node || steps == 0)
    return false;
  auto readsRoot = [&](const onnx::NodeProto &reader, int input) {
    const onnx::NodeProto *made =
        input < reader.input_size() ? values.producer(values.viewed(reader.input(input))) : nullptr;
    return made && (made->op_type() == "Sqrt" || made->op_type() == "Pow");
  };
  StringRef op = node->op_type();
  if (op.ends_with("Normalization") || op.starts_with("LpNormalization"))
    return true;
  if (op == "Div")
    return readsRoot(*node, 1);
  return op == "Mul" && llvm::any_of(node->input(), [&](const std::string &input) {
           const onnx::NodeProto *made = values.producer(values.viewed(input));
           bool isInverse =
               made && ((made->op_type() == "Reciprocal" && readsRoot(*made, 0)) ||
                        (made->op_type() == "Div" && readsRoot(*made, 1)) || made->op_type() == "Pow");
           return isInverse || (values.initializer(input) == nullptr && isNormalized(input, steps - 1));
         });
}

/// Whether a value leaves a normalization as it is.
static bool isPlain(const Use &use, double value) {
  return use.op().ends_with("Normalization") &&
         ((use.input == 1 && value == 1) || (use.input == 2 && value == 0));
}

/// Whether what a normalization gives is scaled or shifted by the model's own weights: exporters write a
/// group's as an instance's.
bool InitializerUses::isScaledAfter(const Use &use) const {
  std::vector<Use> readers;
  values.collect(use.result(), readers);
  return !readers.empty() && llvm::all_of(readers, [&](const Use &reader) {
    return (reader.op() == "Mul" || reader.op() == "Add") && values.initializer(otherOf(reader));
  });
}

bool InitializerUses::isLayers(const Use &use, const onnx::TensorProto &tensor) const {
  StringRef op = use.op();
  int input = use.input;
  int64_t elements = numElements(tensor);
  if (elements > 1 && (op == "Mul" || op == "Add") && isNormalized(otherOf(use), 3))
    return true;
  return llvm::StringSwitch<bool>(op)
      .Cases({"MatMul", "Einsum"}, elements > 1 || tensor.dims_size() > 1)
      .Cases({"Gemm", "Conv", "ConvTranspose", "DeformConv"}, true)
      .Cases({"RNN", "GRU", "LSTM"}, (input >= 1 && input <= 3) || input == 7)
      .Cases({"LayerNormalization", "RMSNormalization", "GroupNormalization"}, input == 1 || input == 2)
      .Cases({"InstanceNormalization", "BatchNormalization", "SimplifiedLayerNormalization"},
             input == 1 || input == 2)
      .Case("PRelu", input == 1)
      .Case("Gather", input == 0 && tensor.dims_size() > 1)
      .Default(isBias(use, tensor));
}

/// Whether a value is an input of the model, perhaps with an initializer added to or multiplied with it.
bool InitializerUses::isInput(StringRef value, int steps) const {
  const onnx::NodeProto *node = values.producer(values.viewed(value));
  if (!node)
    return !value.empty() && !values.initializer(value);
  return steps > 0 && isShiftOrScale(node->op_type()) &&
         llvm::any_of(node->input(), [&](const std::string &input) { return values.initializer(input); }) &&
         llvm::any_of(node->input(), [&](const std::string &input) { return isInput(input, steps - 1); });
}

/// Whether one of an operator's results has a gradient.
bool InitializerUses::isDerived(const Use &use) const {
  return llvm::any_of(use.node->output(),
                      [&](const std::string &result) { return values.hasGradient(result); });
}

bool InitializerUses::decides(StringRef name) const { return values.decides(name); }

/// Whether a value reaches an operator within some more nodes of arithmetic.
bool InitializerUses::leadsTo(StringRef value, StringRef op, int steps) const {
  return llvm::any_of(values.readers(value), [&](const Use &use) {
    bool passes = isShiftOrScale(use.op()) ||
                  llvm::StringSwitch<bool>(use.op())
                      .Cases({"Where", "Max", "Min", "Clip", "Neg", "Identity", "Cast"}, true)
                      .Cases({"Reshape", "Flatten", "Transpose", "Squeeze"}, true)
                      .Cases({"Unsqueeze", "Expand", "Slice"}, true)
                      .Default(false);
    return use.op() == op || (passes && steps > 0 && leadsTo(use.result(), op, steps - 1));
  });
}

/// Whether a value is a product of two values of the data, as attention's scores are.
bool InitializerUses::isScore(StringRef value, int steps) const {
  const onnx::NodeProto *node = values.producer(values.viewed(value));
  if (!node || steps == 0)
    return false;
  if (node->op_type() == "MatMul" || node->op_type() == "Einsum")
    return llvm::none_of(node->input(), [&](const std::string &input) { return values.initializer(input); });
  return isShiftOrScale(node->op_type()) &&
         llvm::any_of(node->input(), [&](const std::string &input) { return isScore(input, steps - 1); });
}

/// Hidden places are far below zero where they are added, or chosen by Where, on the way to a softmax; zeros
/// among ones where they are multiplied.
bool InitializerUses::isMask(ArrayRef<Use> uses, const TensorValues &elements) const {
  bool isMultiplied = false, isAdded = false;
  for (const Use &use : uses) {
    StringRef op = use.op();
    bool multiplies = op == "Mul" || (op == "Sub" && use.input == 1);
    bool adds = op == "Add" || op == "Sub" || (op == "Where" && use.input > 0);
    if (!multiplies && (op == "Attention" ? use.input != 3 : !adds || !leadsTo(use.result(), "Softmax", 6)))
      return false;
    isMultiplied |= multiplies;
    isAdded |= !multiplies;
  }
  auto has = [&](double number) { return elements.any([=](double value) { return value == number; }); };
  if (isMultiplied &&
      !(elements.all([](double value) { return value == 0 || value == 1; }) && has(0) && has(1)))
    return false;
  auto hides = [](double value) { return value <= kHidden; };
  return !isAdded ||
         (elements.any(hides) && elements.all([&](double value) { return hides(value) || value == 0; }));
}

/// Whether constants say where an operator puts its input among constants: a sparse table written in full.
bool InitializerUses::isEntry(const Use &use) const {
  if (!use.op().starts_with("Scatter") || use.input != 2)
    return false;
  const onnx::NodeProto *data = values.producer(use.node->input(0));
  bool isKnown = data ? data->op_type() == "ConstantOfShape" || data->op_type() == "Constant"
                      : values.initializer(use.node->input(0)) != nullptr;
  return isKnown && values.initializer(use.node->input(1));
}

/// An epsilon keeps a root, a logarithm or a divisor from zero.
bool InitializerUses::isEpsilon(const Use &use, double value) const {
  bool isGuard = use.op() == "Add" || use.op() == "Max" || (use.op() == "Clip" && use.input == 1);
  return isGuard && value > 0 && value <= 1e-2 &&
         llvm::any_of(values.readers(use.result()), [](const Use &reader) {
           return llvm::StringSwitch<bool>(reader.op())
               .Cases({"Sqrt", "Log", "Reciprocal", "Pow"}, true)
               .Default(reader.op() == "Div" && reader.input == 1);
         });
}

/// What a recurrence begins with.
static bool isState(const Use &use) {
  return (use.op() == "RNN" || use.op() == "GRU" || use.op() == "LSTM") && (use.input == 5 || use.input == 6);
}

/// Why an operator never means its input, whose elements all are this value, as a parameter; empty where it
/// may.
StringRef InitializerUses::constantUse(const Use &use, double value, bool isOne) const {
  StringRef op = use.op(), result = use.result();
  if (!isDerived(use))
    return values.decides(result) ? "decides a shape, an index, a loop or a branch" : "no gradient";
  if (isComparison(op))
    return "compared with";
  if (llvm::StringSwitch<bool>(op)
          .Cases({"Mod", "Range", "Dropout", "Pad", "OneHot", "MelWeightMatrix", "RoiAlign"}, true)
          .Default(false))
    return "number";
  if (op == "Where")
    return value <= kHidden || (value == 0 && !use.isExpanded) ? "number" : "";
  if (value == 0 && isOne && use.isExpanded && (isState(use) || op == "Loop" || op == "Scan"))
    return "a state of zeros";
  if (op == "Sub" && use.input == 0 && value == 1)
    return "number";
  if (isShiftOrScale(op) && values.isRange(otherOf(use)))
    return "offset of a range";
  if (formulas.contains(use))
    return "coefficient of a formula";
  if (isEpsilon(use, value))
    return "number";
  // Scores of attention are divided by a root of the heads' size.
  double squared = op == "Mul" ? 1 / (value * value) : op == "Div" && use.input == 1 ? value * value : 0;
  if (squared > 1 && std::fabs(squared - std::round(squared)) < 4e-6 * squared &&
      (isScore(otherOf(use), 4) || leadsTo(result, "MatMul", 4)) && leadsTo(result, "Softmax", 6))
    return "coefficient of a formula";
  return "";
}

/// Numbers that happen to be equal are stored once: one that is added here and multiplied there is no
/// parameter.
StringRef InitializerUses::unlike(ArrayRef<Use> uses) const {
  StringRef kind;
  for (const Use &use : uses) {
    StringRef op = use.op();
    // What is computed of numbers alone says nothing.
    if (isShiftOrScale(op) && !std::isnan(values.number(otherOf(use))))
      continue;
    StringRef own = llvm::StringSwitch<StringRef>(op)
                        .Cases({"Add", "Sub"}, "shift")
                        .Cases({"Mul", "Div"}, "scale")
                        .Cases({"Where", "Clip", "Min", "Max"}, "bound")
                        .Default(isComparison(op) ? "bound" : op);
    if (values.decides(use.result()))
      own = "index";
    if (!kind.empty() && own != kind)
      return "shared by unlike uses";
    kind = own;
  }
  return "";
}

Purpose InitializerUses::purpose(const onnx::TensorProto &tensor) const {
  std::vector<Use> uses;
  values.collect(tensor.name(), uses);
  RankedTensorType type = possibleType(tensor, location.getContext());
  if (uses.empty() && !values.hasGradient(tensor.name()))
    return {Purpose::Constant, values.decides(tensor.name()) ? "decides a shape, an index, a loop or a branch"
                                                             : "read by nothing"};
  if (!type || type.getNumElements() == 0)
    return {Purpose::Tensor, "takes part in a gradient"};
  TensorValues elements(file, tensor, type, location);
  bool areEqual = elements.areEqual();
  if (elements.size() && std::isinf(elements[0]) && areEqual)
    return {Purpose::Constant, "infinite"};
  if (areEqual && !uses.empty() &&
      llvm::all_of(uses, [&](const Use &use) { return isPlain(use, elements[0]); }))
    return llvm::all_of(uses, [&](const Use &use) { return isScaledAfter(use); })
               ? Purpose{Purpose::Constant, "a normalization's, which is scaled by others"}
               : Purpose{Purpose::Plain, "takes part in a gradient"};
  if (llvm::any_of(uses, [&](const Use &use) { return isLayers(use, tensor); })) {
    bool isKernel =
        llvm::any_of(uses, [](const Use &use) { return use.input == 1 && use.op().starts_with("Conv"); });
    StringRef form = closedForm(type.getShape(), elements, isKernel);
    if (StringRef beside = areEqual && elements[0] == 0 ? formBeside(uses) : ""; !beside.empty())
      return {Purpose::ClosedForm, "zeros beside " + beside.str()};
    return form.empty() ? Purpose{Purpose::Weight, "takes part in a gradient"}
                        : Purpose{Purpose::ClosedForm, "a layer's weight, but " + form.str()};
  }
  // Exporters write a recurrence that is given no state with zeros in a node.
  if (areEqual && elements[0] == 0 && !uses.empty() && llvm::all_of(uses, isState) &&
      file.isLifted(file.findInitializer(tensor.name())))
    return {Purpose::Constant, "a state of zeros"};
  if (type.getNumElements() > 1 && !uses.empty() && isMask(uses, elements))
    return {Purpose::Constant, "mask"};
  if (areEqual || llvm::none_of(uses, [&](const Use &use) { return isDerived(use); })) {
    StringRef why;
    bool isConstant = !uses.empty();
    for (const Use &use : uses) {
      StringRef own = constantUse(use, areEqual ? elements[0] : NAN, type.getNumElements() == 1);
      isConstant &= !own.empty();
      why = why.empty() ? own : why;
    }
    // What decides where to read stays what it is, whatever else is done with it.
    if (areEqual && !isConstant) {
      isConstant = values.decides(tensor.name());
      why = isConstant ? StringRef("decides a shape, an index, a loop or a branch") : unlike(uses);
      isConstant |= !why.empty();
    }
    if (isConstant)
      return {Purpose::Constant, why.str()};
  }
  if (!uses.empty() && llvm::all_of(uses, [&](const Use &use) { return isEntry(use); }))
    return {Purpose::ClosedForm, "entries of a sparse table"};
  // An exponent or a logarithm of a constant would be a constant itself.
  bool isComputed = !uses.empty() && llvm::all_of(uses, [](const Use &use) {
    return use.node->input_size() == 1 && use.op() != "Concat";
  });
  if (areEqual && !isComputed)
    return {Purpose::Number, type.getNumElements() == 1 ? "one number" : "equal numbers"};
  if (StringRef form = closedForm(type.getShape(), elements, false); !form.empty() && !areEqual)
    return {form == "a table of waves" || form == "a window" ? Purpose::ClosedForm : Purpose::Number,
            form.str()};
  bool normalize = llvm::all_of(uses, [&](const Use &use) {
    return (use.op() == "Sub" || use.op() == "Div") && use.input == 1 && isInput(otherOf(use), 3);
  });
  if (normalize && !uses.empty() && type.getNumElements() <= kMaxChannels)
    return {Purpose::Number, "an input's mean or deviation"};
  return {Purpose::Tensor, "takes part in a gradient"};
}

} // namespace dsopt::onnx_import
