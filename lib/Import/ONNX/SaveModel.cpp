//===- SaveModel.cpp - a model without its parameters ----------------------===//

#include "ModelFile.h"
#include "Tensors.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::onnx_import;

/// Puts the bytes of an initializer into the protobuf.
static LogicalResult inlineData(ModelFile &file, int index, onnx::TensorProto &tensor, Location location) {
  const Extent &extent = file.extent(index);
  if (extent.file.empty())
    return success();
  RankedTensorType type = tensorType(tensor, "initializer '" + tensor.name() + "'", location);
  if (!type)
    return failure();
  int64_t bytes = graph::numBytes(type);
  const llvm::MemoryBuffer *data = file.weights(extent, bytes, tensor.name(), location);
  if (!data)
    return failure();
  tensor.set_raw_data(data->getBuffer().substr(extent.offset, bytes).str());
  tensor.clear_external_data();
  tensor.clear_data_location();
  return success();
}

static onnx::NodeProto constantNode(onnx::TensorProto tensor) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.add_output(tensor.name());
  onnx::AttributeProto &value = *node.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = std::move(tensor);
  return node;
}

FailureOr<std::string> dsopt::modelWithoutParameters(StringRef path, ModuleOp module) {
  Location location = module.getLoc();
  StringRef weightsFolder;
  if (auto folder = module->getAttrOfType<StringAttr>(graph::kWeightsFolderAttr))
    weightsFolder = folder.getValue();
  std::unique_ptr<ModelFile> file = ModelFile::open(path, weightsFolder, location);
  if (!file)
    return failure();
  std::vector<std::string> untied;
  if (auto globs = module->getAttrOfType<ArrayAttr>(graph::kUntieAttr))
    for (auto glob : globs.getAsRange<StringAttr>())
      untied.push_back(glob.str());
  if (failed(untieInitializers(*file, untied, location)))
    return failure();

  onnx::GraphProto &graph = *file->model().mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> constants;
  llvm::StringSet<> parameters;
  for (auto parameter : module.getOps<graph::ParameterOp>())
    parameters.insert(parameter.getModelName());
  for (auto [i, tensor] : llvm::enumerate(*graph.mutable_initializer())) {
    if (parameters.contains(tensor.name()))
      continue;
    if (failed(inlineData(*file, i, tensor, location)))
      return failure();
    // What was a constant in the file and was not trained is one in this: the same options mean the same of
    // it.
    if (file->isLifted(i))
      *constants.Add() = constantNode(std::move(tensor));
    else
      *kept.Add() = std::move(tensor);
  }
  graph.mutable_initializer()->Swap(&kept);
  constants.MergeFrom(graph.node());
  graph.mutable_node()->Swap(&constants);
  // Exporters leave stack traces of the machine they ran on; ours says module and line.
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    auto &entries = *node.mutable_metadata_props();
    for (int i = entries.size(); i-- > 0;)
      if (entries[i].key() != kModuleKey && entries[i].key() != kSourceKey)
        entries.DeleteSubrange(i, 1);
    node.clear_doc_string();
  }
  std::string text;
  if (!file->model().SerializeToString(&text))
    return emitError(location) << "cannot serialize '" << path << "' without its parameters: over 2 GiB";
  return text;
}
