//===- InitializerUses.cpp - constants that nothing marks ------------------===//

#include "InitializerUses.h"

#include "Scopes.h"
#include "Tensors.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// What lies below is hidden by a mask that is added.
static constexpr double kHidden = -1e4;

class InitializerUses::Values {
public:
  Values(ModelFile &file, const onnx::TensorProto &tensor, RankedTensorType type, Location location)
      : element(type.getElementType()), width(type.getElementTypeBitWidth() / 8) {
    const Extent &extent = file.extent(file.findInitializer(tensor.name()));
    bool absent = false;
    if (extent.file.empty()) {
      if (auto data = typedBytes(tensor, type, "initializer '" + tensor.name() + "'", location);
          succeeded(data))
        bytes = typed = std::move(*data);
    } else if (const llvm::MemoryBuffer *data =
                   file.weights(extent, type.getNumElements() * width, tensor.name(), location, &absent)) {
      bytes = data->getBuffer().substr(extent.offset, type.getNumElements() * width);
    }
  }

  int64_t size() const { return bytes.size() / width; }
  double operator[](int64_t index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * width, width);
    APFloat number(cast<FloatType>(element).getFloatSemantics(), APInt(8 * width, bits));
    bool lost;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return number.convertToDouble();
  }
  template <typename Holds> bool all(Holds holds) const {
    for (int64_t i = 0; i < size(); ++i)
      if (!holds((*this)[i]))
        return false;
    return size() > 0;
  }
  template <typename Holds> bool any(Holds holds) const {
    return !all([&](double value) { return !holds(value); }) && size() > 0;
  }

private:
  Type element;
  int64_t width;
  std::string typed;
  StringRef bytes;
};

InitializerUses::InitializerUses(ModelFile &file, Location location) : file(file), location(location) {
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    for (int i = 0; i < node.input_size(); ++i)
      readers[node.input(i)].push_back({&node, i});
    for (const std::string &output : node.output())
      producers[output] = &node;
  });
}

static bool isView(const onnx::NodeProto &node, int input) {
  StringRef op = node.op_type();
  return input == 0 && llvm::StringSwitch<bool>(op)
                           .Cases({"Identity", "Cast", "CastLike", "Reshape", "Flatten", "Transpose"}, true)
                           .Cases({"Squeeze", "Unsqueeze", "Expand", "Slice", "Tile", "Split"}, true)
                           .Default(false);
}

/// The operators that read a value, perhaps through views of it.
void InitializerUses::collect(StringRef name, std::vector<Use> &uses) const {
  auto found = readers.find(name);
  if (found == readers.end())
    return;
  for (const Use &use : found->second)
    if (isView(*use.node, use.input))
      for (const std::string &output : use.node->output())
        collect(output, uses);
    else
      uses.push_back(use);
}

/// Whether a value reaches an operator within some more nodes of arithmetic.
bool InitializerUses::leadsTo(StringRef name, StringRef op, int steps) const {
  auto found = readers.find(name);
  if (found == readers.end())
    return false;
  return llvm::any_of(found->second, [&](const Use &use) {
    StringRef reader = use.node->op_type();
    bool passes = isView(*use.node, use.input) ||
                  llvm::StringSwitch<bool>(reader)
                      .Cases({"Add", "Sub", "Mul", "Div", "Where", "Max", "Min", "Clip", "Neg"}, true)
                      .Default(false);
    return reader == op || (passes && steps > 0 && use.node->output_size() > 0 &&
                            leadsTo(use.node->output(0), op, steps - 1));
  });
}

/// Whether an operator is within some steps of a node, forwards or backwards through arithmetic.
bool InitializerUses::isNear(const onnx::NodeProto &node, StringRef op, int steps) const {
  auto leads = [&](const onnx::NodeProto &next) {
    bool passes = llvm::StringSwitch<bool>(next.op_type())
                      .Cases({"Add", "Sub", "Mul", "Div", "Pow", "Identity", "Cast"}, true)
                      .Default(false);
    return next.op_type() == op || (passes && steps > 1 && isNear(next, op, steps - 1));
  };
  auto isRead = [&](const std::string &value) {
    auto found = readers.find(value);
    return found != readers.end() &&
           llvm::any_of(found->second, [&](const Use &use) { return use.node != &node && leads(*use.node); });
  };
  auto isMade = [&](const std::string &value) {
    auto producer = producers.find(value);
    return producer != producers.end() && leads(*producer->second);
  };
  return llvm::any_of(node.input(), isMade) || llvm::any_of(node.input(), isRead) ||
         llvm::any_of(node.output(), isRead);
}

/// Hidden places are far below zero where they are added, or chosen by Where, on the way to a softmax; zeros
/// among ones where they are multiplied.
bool InitializerUses::isMask(ArrayRef<Use> uses, Values &values) const {
  auto hides = [](double value) { return value <= kHidden; };
  return llvm::all_of(uses, [&](const Use &use) {
    StringRef op = use.node->op_type();
    if (op == "Mul" || (op == "Sub" && use.input == 1))
      return values.all([](double value) { return value == 0 || value == 1; }) &&
             values.any([](double value) { return value == 0; }) &&
             values.any([](double value) { return value == 1; });
    bool isAdded = op == "Add" || op == "Sub" || (op == "Where" && use.input > 0);
    if (op == "Attention"
            ? use.input != 3
            : !isAdded || use.node->output_size() == 0 || !leadsTo(use.node->output(0), "Softmax", 6))
      return false;
    return values.any(hides) && values.all([&](double value) { return hides(value) || value == 0; });
  });
}

/// Whether a number is one of GELU's: x / 2 (1 + erf(x / sqrt(2))), x / 2 (1 + tanh(sqrt(2 / pi) (x +
/// 0.044715 x^3))) or x sigmoid(1.702 x).
bool InitializerUses::isFactorOfGelu(const onnx::NodeProto &node, double value) const {
  auto is = [&](std::initializer_list<double> known) {
    return llvm::any_of(known, [&](double one) { return std::fabs(value - one) <= 1e-3 * one; });
  };
  if (is({0.5, 1}))
    return isNear(node, "Erf", 3) || (isNear(node, "Tanh", 3) && isNear(node, "Pow", 5));
  return (is({M_SQRT2, M_SQRT1_2}) && isNear(node, "Erf", 1)) ||
         (is({0.044715, M_2_SQRTPI * M_SQRT1_2, 3}) && isNear(node, "Tanh", 3)) ||
         (is({1.702}) && isNear(node, "Sigmoid", 1));
}

/// Whether an operator means its input, which has this one value, as a number.
bool InitializerUses::isNumber(const Use &use, double value) const {
  const onnx::NodeProto &node = *use.node;
  StringRef op = node.op_type(), result = node.output_size() ? StringRef(node.output(0)) : "";
  if (op == "Pow" || op == "Where")
    return op == "Pow" ? use.input == 1 : value <= kHidden || value == 0;
  if (op != "Add" && op != "Sub" && op != "Mul" && op != "Div")
    return llvm::StringSwitch<bool>(op)
        .Cases({"Clip", "Min", "Max", "Mod", "Range", "Dropout", "Pad", "OneHot", "MelWeightMatrix"}, true)
        .Default(false);
  if (op == "Sub" && use.input == 0 && value == 1)
    return true;
  // An epsilon keeps a root, a logarithm or a divisor from zero.
  if (op == "Add" && value > 0 && value <= 1e-2) {
    auto found = readers.find(result);
    return found != readers.end() && llvm::any_of(found->second, [](const Use &reader) {
             return llvm::StringSwitch<bool>(reader.node->op_type())
                 .Cases({"Sqrt", "Log", "Reciprocal", "Pow"}, true)
                 .Default(reader.node->op_type() == "Div" && reader.input == 1);
           });
  }
  if (isFactorOfGelu(node, value))
    return true;
  // Scores of attention are divided by a root of the heads' size.
  double squared = op == "Mul" ? 1 / (value * value) : op == "Div" ? value * value : 0;
  return squared > 1 && std::fabs(squared - std::round(squared)) < 1e-4 * squared &&
         leadsTo(result, "Softmax", 4);
}

/// Samples of a wave satisfy v[p + 1] + v[p - 1] = 2 cos(w) v[p]; each column starts as a sine or a cosine
/// of 0 and moves.
template <typename Values> static bool isTableOfSines(RankedTensorType type, const Values &values) {
  SmallVector<int64_t> shape;
  for (int64_t size : type.getShape())
    if (size > 1)
      shape.push_back(size);
  if (shape.size() != 2 || shape[0] < 4 || values.size() == 0)
    return false;
  int64_t rows = shape[0], columns = shape[1];
  auto starts = [](double value) { return std::fabs(value) < 1e-6 || std::fabs(value - 1) < 1e-6; };
  bool moves = false;
  for (int64_t column = 0; column < columns; ++column) {
    auto at = [&](int64_t row) { return values[row * columns + column]; };
    double first = at(1);
    if (!starts(at(0)) || std::fabs(first) > 1 || (at(0) < 0.5 && first == 0))
      return false;
    moves |= !starts(first);
    // The second sample tells the cosine's sign where the first is a sine.
    double slope = 2 * (at(0) < 0.5 ? std::sqrt(1 - first * first) : first);
    if (at(0) < 0.5 && at(2) * first < 0)
      slope = -slope;
    for (int64_t row = 1; row + 1 < rows; ++row)
      if (std::fabs(at(row + 1) + at(row - 1) - slope * at(row)) > 1e-3)
        return false;
  }
  return moves;
}

StringRef InitializerUses::constant(const onnx::TensorProto &tensor) {
  // What is wrong with the data is said where it is read for good.
  ScopedDiagnosticHandler quiet(location.getContext(), [](Diagnostic &) { return success(); });
  std::vector<Use> uses;
  collect(tensor.name(), uses);
  RankedTensorType type = tensorType(tensor, "initializer '" + tensor.name() + "'", location);
  if (uses.empty() || !type || type.getNumElements() == 0)
    return "";
  Values values(file, tensor, type, location);
  if (type.getNumElements() == 1)
    return values.size() && llvm::all_of(uses, [&](const Use &use) { return isNumber(use, values[0]); })
               ? "number"
               : "";
  if (isMask(uses, values))
    return "mask";
  bool isRead = llvm::all_of(uses, [](const Use &use) {
    return llvm::StringSwitch<bool>(use.node->op_type())
        .Cases({"Add", "Mul", "Gather", "RotaryEmbedding"}, true)
        .Default(false);
  });
  return isRead && isTableOfSines(type, values) ? "table of sines" : "";
}

} // namespace dsopt::onnx_import
