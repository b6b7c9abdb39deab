//===- UpgradeOperators.cpp - nodes of old opsets as newer ones ------------===//
//
// Operators changed: attributes became inputs, defaults moved, some have another name. Here a node of an
// older opset gets the form that has its meaning in kUpgradedOpset; whatever needs several nodes for that has
// the user's name on each. All that reads nodes afterwards knows one form of each operator.
//
//===----------------------------------------------------------------------===//

#include "UpgradeOperators.h"

#include "Scopes.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// What upgrades share: names that are taken and values that are read.
struct Names {
  llvm::StringSet<> used, read;
};

/// One node on its way to the newer form, and the nodes around it.
class Upgrade {
public:
  Upgrade(onnx::NodeProto node, int64_t opset, Names &names)
      : node(std::move(node)), opset(opset), names(names) {}

  onnx::NodeProto node;
  const int64_t opset;
  std::vector<onnx::NodeProto> before, after;

  bool has(int input) const { return input < node.input_size() && !node.input(input).empty(); }
  bool wants(int output) const { return output < node.output_size() && !node.output(output).empty(); }
  bool isRead(int output) const { return wants(output) && names.read.contains(node.output(output)); }

  /// Removes an attribute.
  std::optional<onnx::AttributeProto> take(StringRef name);
  template <typename Value> void set(StringRef name, const Value &value) { setAttribute(node, name, value); }
  void setInput(int index, const std::string &name);
  /// Renames the operator; messages go on to say the file's name.
  void become(StringRef op);
  /// A value of the node's own, for messages and files.
  std::string fresh(StringRef what);
  /// Adds a node and returns its first output.
  std::string helper(std::vector<onnx::NodeProto> &where, StringRef op, ArrayRef<std::string> inputs,
                     const std::string &output);
  std::string constant(StringRef what, ArrayRef<int64_t> values, bool isList = true);
  std::string constant(StringRef what, ArrayRef<float> values, bool isList = true);
  /// A list of integers of an attribute as an input.
  void moveIntegers(StringRef attribute, int input);
  /// A float of an attribute as an input, of the first input's type.
  void moveFloat(StringRef attribute, int input);

  template <typename Value>
  static void setAttribute(onnx::NodeProto &node, StringRef name, const Value &value) {
    onnx::AttributeProto &attribute = *node.add_attribute();
    attribute.set_name(name.str());
    if constexpr (std::is_same_v<Value, int64_t>) {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(value);
    } else if constexpr (std::is_same_v<Value, float>) {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(value);
    } else if constexpr (std::is_same_v<Value, onnx::TensorProto>) {
      attribute.set_type(onnx::AttributeProto::TENSOR);
      *attribute.mutable_t() = value;
    } else {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(value);
    }
  }

private:
  std::string addConstant(StringRef what, const onnx::TensorProto &tensor);
  Names &names;
};
} // namespace

std::optional<onnx::AttributeProto> Upgrade::take(StringRef name) {
  auto *attributes = node.mutable_attribute();
  for (int i = 0; i < attributes->size(); ++i)
    if ((*attributes)[i].name() == name) {
      onnx::AttributeProto taken = (*attributes)[i];
      attributes->DeleteSubrange(i, 1);
      return taken;
    }
  return std::nullopt;
}

void Upgrade::setInput(int index, const std::string &name) {
  while (node.input_size() <= index)
    node.add_input("");
  node.set_input(index, name);
}

/// Says on a node which of the file's operators it comes from.
static void markUpgraded(onnx::NodeProto &node, const std::string &op) {
  onnx::StringStringEntryProto &entry = *node.add_metadata_props();
  entry.set_key(kUpgradedKey.str());
  entry.set_value(op);
}

void Upgrade::become(StringRef op) {
  markUpgraded(node, node.op_type());
  node.set_op_type(op.str());
}

std::string Upgrade::fresh(StringRef what) {
  std::string wanted = nodeName(node) + "/" + what.str(), name = wanted;
  for (int i = 1; !names.used.insert(name).second; ++i)
    name = wanted + "/" + std::to_string(i);
  return name;
}

std::string Upgrade::helper(std::vector<onnx::NodeProto> &where, StringRef op, ArrayRef<std::string> inputs,
                            const std::string &output) {
  onnx::NodeProto &added = where.emplace_back();
  *added.mutable_metadata_props() = node.metadata_props();
  StringRef original = metadataOf(node, kUpgradedKey);
  if (original.empty())
    markUpgraded(added, node.op_type());
  added.set_op_type(op.str());
  added.set_name(nodeName(node));
  for (const std::string &input : inputs)
    added.add_input(input);
  added.add_output(output);
  return output;
}

std::string Upgrade::addConstant(StringRef what, const onnx::TensorProto &tensor) {
  std::string name = helper(before, "Constant", {}, fresh(what));
  setAttribute(before.back(), "value", tensor);
  return name;
}

/// Without its values.
static onnx::TensorProto tensorOf(onnx::TensorProto::DataType type, size_t count, bool isList) {
  onnx::TensorProto tensor;
  tensor.set_data_type(type);
  if (isList)
    tensor.add_dims(count);
  return tensor;
}

std::string Upgrade::constant(StringRef what, ArrayRef<int64_t> values, bool isList) {
  onnx::TensorProto tensor = tensorOf(onnx::TensorProto::INT64, values.size(), isList);
  tensor.mutable_int64_data()->Add(values.begin(), values.end());
  return addConstant(what, tensor);
}

std::string Upgrade::constant(StringRef what, ArrayRef<float> values, bool isList) {
  onnx::TensorProto tensor = tensorOf(onnx::TensorProto::FLOAT, values.size(), isList);
  tensor.mutable_float_data()->Add(values.begin(), values.end());
  return addConstant(what, tensor);
}

void Upgrade::moveIntegers(StringRef attribute, int input) {
  if (auto given = take(attribute))
    setInput(input, constant(attribute, SmallVector<int64_t>(given->ints().begin(), given->ints().end())));
}

void Upgrade::moveFloat(StringRef attribute, int input) {
  auto given = take(attribute);
  if (!given || !has(0))
    return;
  std::string value = constant((attribute + "_f32").str(), ArrayRef<float>(given->f()), /*isList=*/false);
  setInput(input, helper(before, "CastLike", {value, node.input(0)}, fresh(attribute)));
}

//===----------------------------------------------------------------------===//
// The operators
//===----------------------------------------------------------------------===//

static void axesToInput(Upgrade &u) { u.moveIntegers("axes", 1); }

/// Training was what wants the batch's statistics.
static void batchNormalization(Upgrade &u) {
  // Other statistics than those of channels are refused.
  if (auto spatial = u.take("spatial"); spatial && spatial->i() == 0)
    u.set("spatial", int64_t(0));
  if (!(u.wants(1) || u.wants(2) || u.wants(3) || u.wants(4)) || u.node.input_size() < 5) {
    if (u.node.output_size() > 1)
      u.node.mutable_output()->DeleteSubrange(1, u.node.output_size() - 1);
    return;
  }
  u.set("training_mode", int64_t(1));
  // Newer versions have three outputs in training. The last two, the batch's own statistics, are the running
  // ones of no momentum, of a node whose running statistics are nobody's. Exporters name such outputs that
  // nobody reads.
  auto nameOf = [&](int output, StringRef what, bool isWanted) {
    return isWanted ? u.node.output(output) : u.fresh(what);
  };
  if (bool readsMean = u.isRead(3), readsVariance = u.isRead(4); readsMean || readsVariance) {
    std::string none = u.helper(u.before, "Sub", {u.node.input(1), u.node.input(1)}, u.fresh("zeros"));
    auto apart = [&](int input, StringRef what) {
      return u.helper(u.before, "Add", {u.node.input(input), none}, u.fresh(what));
    };
    std::string mean = apart(3, "mean"), variance = apart(4, "variance");
    u.helper(u.before, "BatchNormalization",
             {u.node.input(0), u.node.input(1), u.node.input(2), mean, variance}, u.fresh("normalized"));
    onnx::NodeProto &own = u.before.back();
    own.add_output(nameOf(3, "own_mean", readsMean));
    own.add_output(nameOf(4, "own_variance", readsVariance));
    Upgrade::setAttribute(own, "training_mode", int64_t(1));
    Upgrade::setAttribute(own, "momentum", 0.0f);
  }
  std::string results[] = {nameOf(1, "running_mean", u.wants(1)), nameOf(2, "running_variance", u.wants(2))};
  u.node.mutable_output()->DeleteSubrange(1, u.node.output_size() - 1);
  for (const std::string &result : results)
    u.node.add_output(result);
}

static void clip(Upgrade &u) {
  u.moveFloat("min", 1);
  u.moveFloat("max", 2);
}

/// Nothing says that a dropout is in training: it is the identity, and its mask all ones.
static void dropout(Upgrade &u) {
  u.become("Dropout");
  if (auto ratio = u.take("ratio"))
    u.setInput(1, u.constant("ratio", ArrayRef<float>(ratio->f()), /*isList=*/false));
  if (u.opset < 10 && u.wants(1) && u.has(0)) {
    std::string mask = u.node.output(1), kept = u.fresh("mask");
    u.node.set_output(1, kept);
    u.helper(u.after, "CastLike", {kept, u.node.input(0)}, mask);
  }
}

/// Over all dimensions from the axis on, which is 1 where none is given.
static void flattened(Upgrade &u) {
  auto given = u.take("axis");
  int64_t axis = given ? given->i() : 1;
  u.set("axis", int64_t(-1));
  if (axis == -1 || !u.has(0) || !u.wants(0))
    return;
  std::string input = u.node.input(0), output = u.node.output(0);
  std::string rows = u.helper(u.before, "Flatten", {input}, u.fresh("rows"));
  Upgrade::setAttribute(u.before.back(), "axis", axis);
  std::string shape = u.helper(u.before, "Shape", {input}, u.fresh("shape"));
  std::string result = u.fresh("result");
  u.helper(u.after, "Reshape", {result, shape}, output);
  Upgrade::setAttribute(u.after.back(), "allowzero", int64_t(1));
  u.become(u.node.op_type());
  u.setInput(0, rows);
  u.node.set_output(0, result);
}

/// A negative index was out of range.
static void oneHot(Upgrade &u) {
  if (!u.has(0))
    return;
  std::string indices = u.helper(u.before, "Cast", {u.node.input(0)}, u.fresh("indices"));
  Upgrade::setAttribute(u.before.back(), "to", int64_t(onnx::TensorProto::INT64));
  std::string zero = u.constant("zero", ArrayRef<int64_t>(0), /*isList=*/false);
  std::string outside = u.constant("outside", ArrayRef<int64_t>(int64_t(1) << 62), /*isList=*/false);
  std::string negative = u.helper(u.before, "Less", {indices, zero}, u.fresh("negative"));
  u.setInput(0, u.helper(u.before, "Where", {negative, outside, indices}, u.fresh("places")));
}

static void pad(Upgrade &u) {
  u.moveIntegers("pads", 1);
  u.moveFloat("value", 2);
}

/// Places were those of the result divided by the scale, rounded down.
static void resize(Upgrade &u) {
  u.become("Resize");
  std::string scales = u.has(1) ? u.node.input(1) : "";
  if (auto given = u.take("scales"))
    scales = u.constant("scales", SmallVector<float>(given->floats().begin(), given->floats().end()));
  u.setInput(1, "");
  u.setInput(2, scales);
  u.set("coordinate_transformation_mode", std::string("asymmetric"));
  u.set("nearest_mode", std::string("floor"));
}

static void scatter(Upgrade &u) { u.become("ScatterElements"); }

static void slice(Upgrade &u) {
  u.moveIntegers("starts", 1);
  u.moveIntegers("ends", 2);
  u.moveIntegers("axes", 3);
}

static void split(Upgrade &u) { u.moveIntegers("split", 1); }

static void topK(Upgrade &u) {
  if (auto k = u.take("k"))
    u.setInput(1, u.constant("k", ArrayRef<int64_t>(k->i())));
}

namespace {
struct Row {
  StringRef op;
  /// The first opset whose form is the newer one.
  int64_t until;
  void (*rewrite)(Upgrade &);
};
} // namespace

static constexpr Row kRows[] = {
    {"BatchNormalization", 14, batchNormalization},
    {"Clip", 11, clip},
    {"Dropout", 12, dropout},
    {"Hardmax", 13, flattened},
    {"LogSoftmax", 13, flattened},
    {"OneHot", 11, oneHot},
    {"Pad", 11, pad},
    {"ReduceSum", 13, axesToInput},
    {"Resize", 11, resize},
    {"Scatter", 11, scatter},
    {"Slice", 10, slice},
    {"Softmax", 13, flattened},
    {"Split", 13, split},
    {"Squeeze", 13, axesToInput},
    {"TopK", 10, topK},
    {"Unsqueeze", 13, axesToInput},
    {"Upsample", 10, resize},
};

//===----------------------------------------------------------------------===//
// All nodes
//===----------------------------------------------------------------------===//

static void collectNames(const onnx::GraphProto &graph, Names &names) {
  for (const onnx::ValueInfoProto &input : graph.input())
    names.used.insert(input.name());
  for (const onnx::TensorProto &initializer : graph.initializer())
    names.used.insert(initializer.name());
  for (const onnx::ValueInfoProto &output : graph.output())
    names.read.insert(output.name());
  for (const onnx::NodeProto &node : graph.node()) {
    names.used.insert_range(node.output());
    names.read.insert_range(node.input());
    forEachSubgraph(node, [&](const onnx::GraphProto &inner) { collectNames(inner, names); });
  }
}

static void upgradeNodes(Nodes &nodes, int64_t opset, Names &names) {
  Nodes result;
  for (onnx::NodeProto &node : nodes) {
    forEachSubgraph(node,
                    [&](onnx::GraphProto &graph) { upgradeNodes(*graph.mutable_node(), opset, names); });
    const Row *row = llvm::find_if(kRows, [&](const Row &row) {
      return row.op == node.op_type() && opset < row.until && isOnnx(node.domain());
    });
    if (row == std::end(kRows)) {
      result.Add()->Swap(&node);
      continue;
    }
    Upgrade upgrade(node, opset, names);
    row->rewrite(upgrade);
    for (onnx::NodeProto &added : upgrade.before)
      result.Add()->Swap(&added);
    result.Add()->Swap(&upgrade.node);
    for (onnx::NodeProto &added : upgrade.after)
      result.Add()->Swap(&added);
  }
  nodes.Swap(&result);
}

void upgradeOperators(onnx::ModelProto &model, int64_t opset) {
  if (opset >= 13)
    return;
  Names names;
  collectNames(model.graph(), names);
  upgradeNodes(*model.mutable_graph()->mutable_node(), opset, names);
  for (onnx::OperatorSetIdProto &set : *model.mutable_opset_import())
    if (isOnnx(set.domain()))
      set.set_version(kUpgradedOpset);
  model.set_ir_version(std::max<int64_t>(model.ir_version(), 8));
}

} // namespace dsopt::onnx_import
