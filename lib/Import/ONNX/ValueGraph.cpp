//===- ValueGraph.cpp - who reads and who makes a value --------------------===//

#include "ValueGraph.h"

#include "Scopes.h"
#include "TensorValues.h"
#include "Tensors.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Views of views that are looked through: what is invalid may be a cycle.
static constexpr int kMaxViews = 32;

bool isComparison(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"}, true)
      .Default(false);
}

static bool isView(const onnx::NodeProto &node, int input) {
  return input == 0 && llvm::StringSwitch<bool>(node.op_type())
                           .Cases({"Identity", "Cast", "CastLike", "Reshape", "Flatten", "Transpose"}, true)
                           .Cases({"Squeeze", "Unsqueeze", "Expand", "Slice", "Tile", "Split"}, true)
                           .Default(false);
}

/// Whether what an operator reads there is a size, a place, a count or a condition.
static bool isDeciding(const onnx::NodeProto &node, int input) {
  StringRef op = node.op_type();
  if (input == 0)
    return op == "ConstantOfShape" || op == "Range" || op == "If" || op == "Loop" || op == "OneHot";
  return llvm::StringSwitch<bool>(op)
      .Cases({"Reshape", "Expand", "Tile", "TopK", "Trilu", "Split", "Squeeze", "Unsqueeze"}, true)
      .Cases({"Slice", "Resize", "Range", "Pad", "CenterCropPad", "CumSum"}, op != "Pad" || input != 2)
      .Cases({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"}, input == 1)
      .Cases({"OneHot", "Loop", "SequenceAt", "SplitToSequence"}, input == 1)
      .Default(op.starts_with("Reduce"));
}

/// Whether sizes and indices are computed with it.
static bool computesSizes(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Sign"}, true)
      .Cases({"Floor", "Ceil", "Round", "Sqrt", "Pow", "Min", "Max", "Clip"}, true)
      .Cases({"And", "Or", "Not"}, true)
      .Cases({"Where", "Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Expand", "Tile"}, true)
      .Cases({"Concat", "Slice", "Gather", "Transpose", "Flatten", "Range", "NonZero", "CumSum"}, true)
      .Default(isComparison(op));
}

/// Whether an operator has a derivative by what it reads there.
static bool hasDerivative(const onnx::NodeProto &node, int input) {
  StringRef op = node.op_type();
  if (isDeciding(node, input) && op != "OneHot")
    return false;
  if (op == "Cast")
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.name() == "to")
        return isFloatType(attribute.i());
  return llvm::StringSwitch<bool>(op)
      .Cases({"And", "Or", "Not"}, false)
      .Cases({"Floor", "Ceil", "Round", "Sign", "Shape", "Size", "ArgMax", "ArgMin", "NonZero"}, false)
      .Cases({"IsNaN", "IsInf", "RandomNormalLike", "RandomUniformLike", "Bernoulli"}, false)
      .Case("Where", input != 0)
      .Default(!isComparison(op));
}

ValueGraph::ValueGraph(ModelFile &file, ArrayRef<StringRef> results, Location location)
    : file(file), location(location) {
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    for (int i = 0; i < node.input_size(); ++i)
      uses[node.input(i)].push_back({&node, i});
    for (const std::string &output : node.output())
      producers[output] = &node;
  });
  findDeciding();
  findDifferentiable(results);
  findRanges();
}

ArrayRef<Use> ValueGraph::readers(StringRef value) const {
  auto found = uses.find(value);
  return found == uses.end() ? ArrayRef<Use>() : ArrayRef<Use>(found->second);
}

const onnx::NodeProto *ValueGraph::producer(StringRef value) const { return producers.lookup(value); }

void ValueGraph::collect(StringRef value, std::vector<Use> &found) const {
  llvm::StringSet<> seen;
  SmallVector<std::pair<StringRef, bool>> open{{value, false}};
  while (!open.empty()) {
    auto [view, isExpanded] = open.pop_back_val();
    // What is invalid may be a cycle.
    if (!seen.insert(view).second)
      continue;
    for (const Use &use : readers(view))
      if (isView(*use.node, use.input))
        for (const std::string &output : use.node->output())
          open.push_back({output, isExpanded || use.op() == "Expand" || use.op() == "Tile"});
      else
        found.push_back({use.node, use.input, isExpanded});
  }
}

StringRef ValueGraph::viewed(StringRef value) const {
  for (int steps = 0; steps < kMaxViews; ++steps) {
    const onnx::NodeProto *node = producer(value);
    if (!node || node->input_size() == 0 || !isView(*node, 0))
      break;
    value = node->input(0);
  }
  return value;
}

const onnx::TensorProto *ValueGraph::initializer(StringRef value) const {
  int index = file.findInitializer(viewed(value));
  return index < 0 ? nullptr : &file.graph().initializer(index);
}

double ValueGraph::number(StringRef value, double *precision) const {
  ScopedDiagnosticHandler quiet(location.getContext(), [](Diagnostic &) { return success(); });
  const onnx::TensorProto *tensor = initializer(value);
  const onnx::NodeProto *node = producer(viewed(value));
  if (!tensor && node && node->op_type() == "Constant" && node->attribute_size() == 1) {
    const onnx::AttributeProto &attribute = node->attribute(0);
    if (attribute.has_f() || attribute.has_i())
      return attribute.has_f() ? attribute.f() : attribute.i();
    if (auto constant = attribute.has_t() ? constantOf(attribute.t(), "", location) : DenseElementsAttr();
        constant && constant.getNumElements() == 1) {
      if (isa<FloatType>(constant.getElementType()))
        return constant.getSplatValue<APFloat>().convertToDouble();
      return constant.getSplatValue<APInt>().getSExtValue();
    }
  }
  RankedTensorType type = tensor ? possibleType(*tensor, location.getContext()) : RankedTensorType();
  if (!type || type.getNumElements() != 1 || !isa<FloatType>(type.getElementType()))
    return NAN;
  TensorValues values(file, *tensor, type, location);
  if (precision)
    *precision = std::max(*precision, values.precision());
  return values.size() ? values[0] : NAN;
}

void ValueGraph::findDeciding() {
  std::vector<StringRef> open;
  auto add = [&](StringRef value) {
    if (!value.empty() && deciding.insert(value).second)
      open.push_back(value);
  };
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    for (int i = 0; i < node.input_size(); ++i)
      if (isDeciding(node, i))
        add(node.input(i));
    if (node.op_type() == "Loop")
      forEachSubgraph(node, [&](const onnx::GraphProto &body) {
        if (body.output_size())
          add(body.output(0).name());
      });
  });
  while (!open.empty()) {
    const onnx::NodeProto *node = producer(open.back());
    open.pop_back();
    if (node && computesSizes(node->op_type()))
      for (const std::string &input : node->input())
        add(input);
  }
}

void ValueGraph::findDifferentiable(ArrayRef<StringRef> results) {
  std::vector<StringRef> open;
  auto add = [&](StringRef value) {
    if (!value.empty() && differentiable.insert(value).second)
      open.push_back(value);
  };
  for (const onnx::ValueInfoProto &output : file.graph().output())
    add(output.name());
  for (StringRef result : results)
    add(result);
  for (const onnx::NodeProto &node : file.graph().node())
    for (const std::string &output : node.output())
      if (readers(output).empty())
        add(output);
  while (!open.empty()) {
    const onnx::NodeProto *node = producer(open.back());
    open.pop_back();
    if (!node)
      continue;
    for (int i = 0; i < node->input_size(); ++i)
      if (hasDerivative(*node, i))
        add(node->input(i));
    forEachSubgraph(*node, [&](const onnx::GraphProto &graph) {
      for (const onnx::ValueInfoProto &output : graph.output())
        add(output.name());
    });
  }
}

void ValueGraph::findRanges() {
  llvm::StringSet<> plain;
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    StringRef op = node.op_type();
    bool isRange = op == "Range";
    bool isPlain = isRange || op == "Shape" || op == "Size" || op == "Constant" ||
                   (computesSizes(op) && llvm::all_of(node.input(), [&](const std::string &input) {
                      isRange |= ranges.contains(input);
                      int index = file.findInitializer(input);
                      if (index < 0)
                        return input.empty() || plain.contains(input);
                      return file.graph().initializer(index).data_type() == onnx::TensorProto::INT64 ||
                             !std::isnan(number(input));
                    }));
    if (!isPlain)
      return;
    plain.insert_range(node.output());
    if (isRange)
      ranges.insert_range(node.output());
  });
}

} // namespace dsopt::onnx_import
