//===- InlineFunctions.cpp - a model's own functions ------------------------===//
//
// A node that calls one of the model's functions is replaced by the function's nodes. Their values
// get names of their own, the caller's name before them; an attribute that refers to the function's
// takes the caller's value or the default. A call that cannot be replaced stays, with what is wrong: it may
// be in a branch that is not taken.
//
//===----------------------------------------------------------------------===//

#include "Scopes.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Functions that call each other to this depth, and nodes that they give in all, with calls among them: of
/// two calls in each function follow 2^depth.
static constexpr int kMaxDepth = 64;
static constexpr int64_t kMaxNodes = 1 << 18, kMaxBytes = 1 << 27;

namespace {
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

class Inliner {
public:
  Inliner(onnx::ModelProto &model, int64_t opset, std::map<std::string, int64_t> &counts, Location location)
      : model(model), opset(opset), counts(counts), location(location) {
    for (const onnx::FunctionProto &function : model.functions())
      functions[keyOf(function.domain(), function.name(), function.overload())] = &function;
  }

  LogicalResult run() {
    Nodes result;
    if (failed(append(model.graph().node(), result, 0)))
      return emitError(location) << problem;
    model.mutable_graph()->mutable_node()->Swap(&result);
    // A model that is saved needs them.
    if (!isLeft)
      model.clear_functions();
    return success();
  }

private:
  static std::string keyOf(const std::string &domain, const std::string &name, const std::string &overload) {
    return (isOnnx(domain) ? "" : domain) + ":" + name + ":" + overload;
  }
  LogicalResult append(const Nodes &nodes, Nodes &result, int depth);
  LogicalResult refuse(const llvm::Twine &what) {
    problem = what.str();
    return failure();
  }
  LogicalResult call(const onnx::NodeProto &node, const onnx::FunctionProto &function, Nodes &result,
                     int depth);
  LogicalResult checkOpsets(const onnx::NodeProto &node, const onnx::FunctionProto &function);
  bool setAttribute(onnx::AttributeProto &attribute, const onnx::NodeProto &node,
                    const onnx::FunctionProto &function);

  onnx::ModelProto &model;
  int64_t opset;
  std::map<std::string, int64_t> &counts;
  Location location;
  llvm::StringMap<const onnx::FunctionProto *> functions;
  int calls = 0;
  /// What functions have given so far.
  int64_t nodes = 0, bytes = 0;
  /// Why the last call could not be replaced, and whether one is left.
  std::string problem;
  bool isLeft = false;
};
} // namespace

LogicalResult Inliner::append(const Nodes &nodes, Nodes &result, int depth) {
  for (const onnx::NodeProto &node : nodes) {
    auto function = functions.find(keyOf(node.domain(), node.op_type(), node.overload()));
    if (function != functions.end()) {
      // Functions' own calls stand or fall with the one from outside.
      if (depth > 0) {
        if (failed(call(node, *function->second, result, depth)))
          return failure();
        continue;
      }
      int before = result.size();
      std::map<std::string, int64_t> counted = counts;
      if (succeeded(call(node, *function->second, result, depth)))
        continue;
      counts = counted;
      result.DeleteSubrange(before, result.size() - before);
      onnx::NodeProto &left = *result.Add();
      left = node;
      onnx::StringStringEntryProto &entry = *left.add_metadata_props();
      entry.set_key(kProblemKey.str());
      entry.set_value(problem);
      isLeft = true;
      continue;
    }
    onnx::NodeProto &copy = *result.Add();
    copy = node;
    LogicalResult inlined = success();
    forEachSubgraph(copy, [&](onnx::GraphProto &graph) {
      Nodes inner;
      if (succeeded(inlined))
        inlined = append(graph.node(), inner, depth);
      graph.mutable_node()->Swap(&inner);
    });
    if (failed(inlined))
      return failure();
  }
  return success();
}

/// The function's operators are those of the model's opset.
LogicalResult Inliner::checkOpsets(const onnx::NodeProto &node, const onnx::FunctionProto &function) {
  for (const onnx::OperatorSetIdProto &set : function.opset_import())
    if (isOnnx(set.domain()) && set.version() != opset)
      return refuse("function '" + function.name() + "' uses opset " + llvm::Twine(set.version()) +
                    ", expected " + llvm::Twine(opset) +
                    " as the model; convert it with onnx.version_converter");
  return success();
}

/// Replaces a reference by the value it refers to; false where there is none.
bool Inliner::setAttribute(onnx::AttributeProto &attribute, const onnx::NodeProto &node,
                           const onnx::FunctionProto &function) {
  if (attribute.ref_attr_name().empty())
    return true;
  std::string name = attribute.name();
  auto take = [&](const google::protobuf::RepeatedPtrField<onnx::AttributeProto> &list) {
    for (const onnx::AttributeProto &given : list)
      if (given.name() == attribute.ref_attr_name()) {
        onnx::AttributeProto copy = given;
        attribute = copy;
        attribute.set_name(name);
        return true;
      }
    return false;
  };
  return take(node.attribute()) || take(function.attribute_proto());
}

LogicalResult Inliner::call(const onnx::NodeProto &node, const onnx::FunctionProto &function, Nodes &result,
                            int depth) {
  if (depth == kMaxDepth)
    return refuse("function '" + function.name() + "' is called within itself, or " + llvm::Twine(kMaxDepth) +
                  " deep");
  if (failed(checkOpsets(node, function)))
    return failure();
  ++counts[(function.domain().empty() ? "" : function.domain() + ".") + function.name()];
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return refuse("a call with " + llvm::Twine(node.input_size()) + " inputs and " +
                  llvm::Twine(node.output_size()) + " outputs, expected at most " +
                  llvm::Twine(function.input_size()) + " and " + llvm::Twine(function.output_size()) +
                  " as function '" + function.name() + "' has");
  // Names inside, and what they are outside. An output may be an input, or unused.
  llvm::StringMap<std::string> names;
  std::string prefix = nodeName(node) + "/" + std::to_string(calls++) + "/";
  for (int i = 0; i < function.input_size(); ++i)
    names[function.input(i)] = i < node.input_size() ? node.input(i) : "";
  Nodes body;
  SmallVector<std::pair<std::string, std::string>> aliases;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    auto [known, isNew] = names.try_emplace(function.output(i), node.output(i));
    if (!isNew)
      aliases.push_back({known->second, node.output(i)});
  }
  auto renamed = [&](const std::string &name) {
    return name.empty() ? name : names.try_emplace(name, prefix + name).first->second;
  };
  // A function's names are unique, those of its subgraphs too.
  auto specialize = [&](auto &&self, onnx::NodeProto &inner) -> void {
    inner.set_name(prefix + nodeName(inner));
    auto *attributes = inner.mutable_attribute();
    for (int i = attributes->size(); i-- > 0;)
      if (!setAttribute((*attributes)[i], node, function))
        attributes->DeleteSubrange(i, 1);
    forEachSubgraph(inner, [&](onnx::GraphProto &graph) {
      for (onnx::NodeProto &nested : *graph.mutable_node())
        self(self, nested);
      renameValues(graph, renamed);
    });
  };
  for (const onnx::NodeProto &inner : function.node()) {
    onnx::NodeProto &copy = *body.Add();
    copy = inner;
    specialize(specialize, copy);
    for (auto *values : {copy.mutable_input(), copy.mutable_output()})
      for (std::string &name : *values)
        name = renamed(name);
    bytes += copy.ByteSizeLong();
    if (++nodes > kMaxNodes || bytes > kMaxBytes)
      return refuse("the model's functions give more than 2^18 nodes, or 128 MiB of them");
  }
  for (auto &[from, to] : aliases) {
    onnx::NodeProto &identity = *body.Add();
    identity.set_op_type("Identity");
    identity.set_name(prefix + to);
    identity.add_input(from);
    identity.add_output(to);
  }
  return append(body, result, depth + 1);
}

LogicalResult inlineFunctions(onnx::ModelProto &model, int64_t opset, std::map<std::string, int64_t> &counts,
                              Location location) {
  return model.functions().empty() ? success() : Inliner(model, opset, counts, location).run();
}

} // namespace dsopt::onnx_import
