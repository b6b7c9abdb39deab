//===- Scopes.h - subgraphs, their names, and the order of nodes -*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_SCOPES_H
#define DSOPT_LIB_IMPORT_ONNX_SCOPES_H

#include "ModelFile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace dsopt::onnx_import {

/// Calls `f` with each graph that is an attribute of the node.
template <typename F> void forEachSubgraph(const onnx::NodeProto &node, F f) {
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      f(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      f(graph);
  }
}
template <typename F> void forEachSubgraph(onnx::NodeProto &node, F f) {
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      f(*attribute.mutable_g());
    for (onnx::GraphProto &graph : *attribute.mutable_graphs())
      f(graph);
  }
}

/// Calls `f` with each node of a graph, and of its subgraphs behind the node that has them.
template <typename F> void forEachNode(const onnx::GraphProto &graph, F f) {
  for (const onnx::NodeProto &node : graph.node()) {
    f(node);
    forEachSubgraph(node, [&](const onnx::GraphProto &inner) { forEachNode(inner, f); });
  }
}
template <typename F> void forEachNode(onnx::GraphProto &graph, F f) {
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    f(node);
    forEachSubgraph(node, [&](onnx::GraphProto &inner) { forEachNode(inner, f); });
  }
}

/// Renames what a graph lists, and what its nodes read and compute; not its subgraphs.
void renameValues(onnx::GraphProto &graph, llvm::function_ref<std::string(const std::string &)> renamed);

/// Gives what subgraphs define names that nothing else of the model (or of the function) has.
void uniteScopes(onnx::ModelProto &model);

/// Makes the initializers of subgraphs those of the model. Names have to be unique.
void liftInitializers(onnx::GraphProto &graph);

/// What a node reads: its inputs, and what its subgraphs take from around them.
std::vector<std::string> readsOf(const onnx::NodeProto &node);
/// The same without what only branches of an If take, of which it is not known yet whether they are taken.
std::vector<std::string> certainReadsOf(const onnx::NodeProto &node);

/// Of what nodes in the order of `orderNodes` compute and read for the wanted values, what only branches of
/// an If take.
llvm::StringSet<> takenByBranches(llvm::ArrayRef<const onnx::NodeProto *> ordered,
                                  llvm::ArrayRef<std::string> wanted);

/// The nodes that compute the wanted values, operands first; a value that is given needs none. Emits
/// an error where nothing computes one.
llvm::FailureOr<std::vector<const onnx::NodeProto *>>
orderNodes(const onnx::GraphProto &graph, llvm::ArrayRef<std::string> wanted,
           llvm::function_ref<bool(const std::string &)> isGiven,
           llvm::function_ref<std::string(const onnx::NodeProto &)> describe, mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_SCOPES_H
