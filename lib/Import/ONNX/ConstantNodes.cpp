//===- ConstantNodes.cpp - weights that are written as nodes ---------------===//

#include "ConstantNodes.h"

#include "Scopes.h"
#include "Tensors.h"
#include "UpgradeOperators.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// What a Constant node holds, if it may be a weight; null else.
static onnx::TensorProto *weightOf(onnx::NodeProto &node, const llvm::StringSet<> &places) {
  if (node.op_type() != "Constant" || !isOnnx(node.domain()) || node.output_size() != 1 ||
      node.attribute_size() != 1 || !node.attribute(0).has_t() ||
      !isFloatType(node.attribute(0).t().data_type()))
    return nullptr;
  // What an upgrade made is none of the file's.
  if (!metadataOf(node, kUpgradedKey).empty())
    return nullptr;
  onnx::TensorProto *tensor = node.mutable_attribute(0)->mutable_t();
  bool isMany =
      tensor->dims_size() > 1 || llvm::any_of(tensor->dims(), [](int64_t size) { return size > 1; });
  return isMany || places.contains(node.output(0)) ? tensor : nullptr;
}

static void liftFrom(onnx::GraphProto &graph, const llvm::StringSet<> &places, onnx::GraphProto &model,
                     llvm::StringSet<> &lifted) {
  auto &nodes = *graph.mutable_node();
  llvm::StringSet<> outputs;
  for (const onnx::ValueInfoProto &output : graph.output())
    outputs.insert(output.name());
  int kept = 0;
  for (int i = 0; i < nodes.size(); ++i) {
    onnx::TensorProto *tensor = weightOf(nodes[i], places);
    if (tensor && !outputs.contains(nodes[i].output(0))) {
      tensor->set_name(nodes[i].output(0));
      lifted.insert(nodes[i].output(0));
      *model.add_initializer() = std::move(*tensor);
      continue;
    }
    forEachSubgraph(nodes[i], [&](onnx::GraphProto &inner) { liftFrom(inner, places, model, lifted); });
    nodes.SwapElements(kept++, i);
  }
  nodes.DeleteSubrange(kept, nodes.size() - kept);
}

void liftConstants(onnx::GraphProto &graph, llvm::StringSet<> &lifted) {
  llvm::StringSet<> places;
  forEachNode(graph, [&](const onnx::NodeProto &node) {
    int first = node.op_type() == "PRelu" || node.op_type() == "Conv" || node.op_type() == "Gemm" ? 1 : -1;
    for (int i = first; first > 0 && i < node.input_size(); ++i)
      places.insert(node.input(i));
  });
  liftFrom(graph, places, graph, lifted);
}

} // namespace dsopt::onnx_import
