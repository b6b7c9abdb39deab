//===- Scopes.cpp - one scope for the values of all graphs of a model -------===//
//
// A subgraph (a branch, a loop's body) may read what is defined around it, and defines names that
// are its own. Where such a name is used elsewhere it is changed, so that behind this a name means
// one value; and what subgraphs hold as initializers becomes the model's.
//
//===----------------------------------------------------------------------===//

#include "Scopes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Names = llvm::StringMap<std::string>;

/// Renames what subgraphs define twice.
class Renamer {
public:
  void define(const std::string &name) { used.insert(name); }
  void renameSubgraphs(Nodes &nodes, const Names &outer) {
    for (onnx::NodeProto &node : nodes)
      forEachSubgraph(node, [&](onnx::GraphProto &graph) { rename(graph, outer); });
  }

private:
  void rename(onnx::GraphProto &graph, Names names) {
    auto defineHere = [&](const std::string &name) {
      if (name.empty())
        return;
      std::string own = name;
      while (!used.insert(own).second)
        own = name + "/" + std::to_string(++copies[name]);
      names[name] = own;
    };
    llvm::StringSet<> inputs;
    for (const onnx::ValueInfoProto &input : graph.input()) {
      defineHere(input.name());
      inputs.insert(input.name());
    }
    for (const onnx::TensorProto &initializer : graph.initializer())
      if (!inputs.contains(initializer.name()))
        defineHere(initializer.name());
    for (const onnx::NodeProto &node : graph.node())
      for (const std::string &output : node.output())
        defineHere(output);
    renameValues(graph, [&](const std::string &name) {
      auto found = names.find(name);
      return found == names.end() ? name : found->second;
    });
    renameSubgraphs(*graph.mutable_node(), names);
  }

  llvm::StringSet<> used;
  llvm::StringMap<int> copies;
};

void liftFrom(Nodes &nodes, onnx::GraphProto &model) {
  for (onnx::NodeProto &node : nodes)
    forEachSubgraph(node, [&](onnx::GraphProto &graph) {
      llvm::StringSet<> inputs;
      for (const onnx::ValueInfoProto &input : graph.input())
        inputs.insert(input.name());
      // What an input would be if nobody gave it is never read: nodes give all inputs of their graphs.
      for (onnx::TensorProto &initializer : *graph.mutable_initializer())
        if (!inputs.contains(initializer.name()))
          *model.add_initializer() = std::move(initializer);
      graph.clear_initializer();
      liftFrom(*graph.mutable_node(), model);
    });
}

bool isIf(const onnx::NodeProto &node) { return node.op_type() == "If" && isOnnx(node.domain()); }

void collectReads(const onnx::NodeProto &node, bool withBranches, std::vector<std::string> &reads) {
  for (const std::string &input : node.input())
    reads.push_back(input);
  if (isIf(node) && !withBranches)
    return;
  forEachSubgraph(node, [&](const onnx::GraphProto &graph) {
    std::vector<std::string> inner;
    llvm::StringSet<> own;
    for (const onnx::ValueInfoProto &input : graph.input())
      own.insert(input.name());
    for (const onnx::NodeProto &node : graph.node()) {
      collectReads(node, withBranches, inner);
      for (const std::string &output : node.output())
        own.insert(output);
    }
    for (const onnx::ValueInfoProto &output : graph.output())
      inner.push_back(output.name());
    for (std::string &name : inner)
      if (!own.contains(name))
        reads.push_back(std::move(name));
  });
}
} // namespace

void renameValues(onnx::GraphProto &graph, llvm::function_ref<std::string(const std::string &)> renamed) {
  for (auto *values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto &value : *values)
      value.set_name(renamed(value.name()));
  for (onnx::TensorProto &initializer : *graph.mutable_initializer())
    initializer.set_name(renamed(initializer.name()));
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *names)
        name = renamed(name);
}

void uniteScopes(onnx::ModelProto &model) {
  Renamer renamer;
  for (const onnx::ValueInfoProto &input : model.graph().input())
    renamer.define(input.name());
  for (const onnx::TensorProto &initializer : model.graph().initializer())
    renamer.define(initializer.name());
  for (const onnx::NodeProto &node : model.graph().node())
    for (const std::string &output : node.output())
      renamer.define(output);
  renamer.renameSubgraphs(*model.mutable_graph()->mutable_node(), {});
  for (onnx::FunctionProto &function : *model.mutable_functions()) {
    Renamer own;
    for (const std::string &input : function.input())
      own.define(input);
    for (const onnx::NodeProto &node : function.node())
      for (const std::string &output : node.output())
        own.define(output);
    own.renameSubgraphs(*function.mutable_node(), {});
  }
}

void liftInitializers(onnx::GraphProto &graph) { liftFrom(*graph.mutable_node(), graph); }

std::vector<std::string> readsOf(const onnx::NodeProto &node) {
  std::vector<std::string> reads;
  collectReads(node, /*withBranches=*/true, reads);
  return reads;
}

std::vector<std::string> certainReadsOf(const onnx::NodeProto &node) {
  std::vector<std::string> reads;
  collectReads(node, /*withBranches=*/false, reads);
  return reads;
}

llvm::StringSet<> takenByBranches(ArrayRef<const onnx::NodeProto *> ordered, ArrayRef<std::string> wanted) {
  llvm::StringSet<> certain, taken;
  bool branches = false;
  for (const onnx::NodeProto *node : ordered) {
    branches |= isIf(*node);
    forEachSubgraph(*node, [&](const onnx::GraphProto &graph) {
      forEachNode(graph, [&](const onnx::NodeProto &inner) { branches |= isIf(inner); });
    });
  }
  if (!branches)
    return taken;
  certain.insert_range(wanted);
  for (const onnx::NodeProto *node : llvm::reverse(ordered))
    if (llvm::any_of(node->output(), [&](const std::string &name) { return certain.contains(name); }))
      for (const std::string &name : certainReadsOf(*node))
        if (!name.empty())
          certain.insert(name);
  auto add = [&](const std::string &name) {
    if (!certain.contains(name))
      taken.insert(name);
  };
  for (const onnx::NodeProto *node : ordered) {
    llvm::for_each(node->output(), add);
    llvm::for_each(readsOf(*node), add);
  }
  return taken;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

FailureOr<std::vector<const onnx::NodeProto *>>
orderNodes(const onnx::GraphProto &graph, ArrayRef<std::string> wanted,
           llvm::function_ref<bool(const std::string &)> isGiven,
           llvm::function_ref<std::string(const onnx::NodeProto &)> describe, Location location) {
  llvm::StringMap<int> producers;
  for (auto [i, node] : llvm::enumerate(graph.node()))
    for (const std::string &output : node.output())
      producers.try_emplace(output, i);
  enum : char { Unseen, Open, Done };
  std::vector<char> states(graph.node_size(), Unseen);
  std::vector<std::vector<std::string>> reads(graph.node_size());
  std::vector<std::pair<int, size_t>> stack; // node, next of what it reads
  std::vector<const onnx::NodeProto *> nodes;
  auto visit = [&](const std::string &name, const onnx::NodeProto *user) -> LogicalResult {
    if (name.empty() || isGiven(name))
      return success();
    auto producer = producers.find(name);
    if (producer == producers.end())
      return emitError(location) << (user ? describe(*user) : "the loss") << " reads '" << name
                                 << "', which nothing computes";
    char &state = states[producer->second];
    if (state == Open)
      return emitError(location) << describe(*user) << " reads '" << name
                                 << "', which depends on it: the graph has a cycle";
    if (state == Unseen) {
      state = Open;
      reads[producer->second] = readsOf(graph.node(producer->second));
      stack.push_back({producer->second, 0});
    }
    return success();
  };
  for (const std::string &name : wanted) {
    if (failed(visit(name, nullptr)))
      return failure();
    while (!stack.empty()) {
      auto [index, next] = stack.back();
      const onnx::NodeProto &node = graph.node(index);
      if (next == reads[index].size()) {
        states[index] = Done;
        nodes.push_back(&node);
        stack.pop_back();
        continue;
      }
      ++stack.back().second;
      if (failed(visit(reads[index][next], &node)))
        return failure();
    }
  }
  // The model's own order is a better one to read, if it is an order at all.
  std::vector<const onnx::NodeProto *> own;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (states[i] != Done)
      continue;
    own.push_back(&graph.node(i));
    for (const std::string &name : reads[i])
      if (auto producer = producers.find(name); producer != producers.end() && producer->second >= i)
        return nodes;
  }
  return own;
}

} // namespace dsopt::onnx_import
