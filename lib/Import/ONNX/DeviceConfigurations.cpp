//===- DeviceConfigurations.cpp - cuts that a model is annotated with -----===//

#include "DeviceConfigurations.h"

#include "Scopes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// One dimension of a tensor, as a spec has it.
struct ShardedDim {
  int64_t axis, shards = 1;
};
} // namespace

/// The axis that a spec names and its shards; what cannot be is an error.
static FailureOr<ShardedDim> readDim(const onnx::ShardedDimProto &dim, const onnx::TensorProto &tensor,
                                     function_ref<InFlightDiagnostic()> refuse) {
  int64_t rank = tensor.dims_size(), axis = dim.axis() < 0 ? dim.axis() + rank : dim.axis();
  if (axis < 0 || axis >= rank)
    return refuse() << "along axis " << dim.axis() << ", which has " << rank << " dimensions";
  ShardedDim result{axis};
  int64_t size = 1;
  bool isKnown = dim.simple_sharding_size() > 0;
  for (const onnx::SimpleShardedDimProto &part : dim.simple_sharding()) {
    if (part.num_shards() < 1)
      return refuse() << "along axis " << axis << " in " << part.num_shards()
                      << " shards, expected 1 or more";
    // What is no number of shards is no size either: no product of such overflows.
    if (part.num_shards() > tensor.dims(axis) || (part.has_dim_value() && part.dim_value() < 1))
      return refuse() << "along axis " << axis << " in " << part.num_shards() << " shards of "
                      << (part.has_dim_value() ? part.dim_value() : tensor.dims(axis));
    result.shards = std::min(result.shards * part.num_shards(), tensor.dims(axis));
    isKnown &= part.has_dim_value() && part.dim_value() <= tensor.dims(axis) / size;
    size *= isKnown ? part.dim_value() : 1;
  }
  bool isGiven = llvm::all_of(dim.simple_sharding(), [](const auto &part) { return part.has_dim_value(); }) &&
                 dim.simple_sharding_size() > 0;
  if (isGiven && (!isKnown || size != tensor.dims(axis)))
    return refuse() << "along axis " << axis << " as one of another size, which has " << tensor.dims(axis);
  return result;
}

LogicalResult DeviceConfigurations::readSpec(const ModelFile &file, const onnx::ShardingSpecProto &spec,
                                             const onnx::NodeProto &node, const std::string &by,
                                             Location location) {
  const std::string &name = spec.tensor_name();
  int index = file.findInitializer(name);
  if (!llvm::is_contained(node.input(), name) && !llvm::is_contained(node.output(), name)) {
    notes.push_back(by + " shards '" + name + "', which it neither reads nor makes: that is not looked at");
    return success();
  }
  if (index < 0) {
    if (!values++)
      firstValue = "'" + name + "' of " + by;
    return success();
  }
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  auto refuse = [&] { return emitError(location) << by << " cuts initializer '" << name << "' "; };
  AskedCut cut{-1, 1, by};
  int64_t cuts = 0;
  for (const onnx::ShardedDimProto &sharded : spec.sharded_dim()) {
    FailureOr<ShardedDim> dim = readDim(sharded, tensor, refuse);
    if (failed(dim))
      return failure();
    if (dim->shards == 1)
      continue;
    ++cuts;
    cut.dim = dim->axis;
    cut.shards = dim->shards;
  }
  if (cuts > 1) {
    notes.push_back(
        by + " cuts initializer '" + name + "' along " + std::to_string(cuts) +
        " dimensions, expected one, as tp is the only axis that cuts values: the compiler chooses");
    return success();
  }
  auto [other, isNew] = asked.try_emplace(name, cut);
  if (!isNew && other->second.dim != cut.dim)
    return emitError(location) << other->second.by << " and " << by << " contradict each other: initializer '"
                               << name << "' has one cut";
  return success();
}

LogicalResult DeviceConfigurations::read(const ModelFile &file, int64_t tensorShards, Location location) {
  SmallVector<StringRef> names;
  for (const onnx::DeviceConfigurationProto &configuration : file.model().configuration())
    names.push_back(configuration.name());
  LogicalResult result = success();
  bool any = false;
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    for (const onnx::NodeDeviceConfigurationProto &own : node.device_configurations()) {
      any = true;
      std::string by = file.describe(node) + " of device configuration '" + own.configuration_id() + "'";
      if (succeeded(result) && !llvm::is_contained(names, StringRef(own.configuration_id())))
        result = emitError(location) << file.describe(node) << " is of device configuration '"
                                     << own.configuration_id() << "', of which the model says nothing"
                                     << (names.empty() ? "" : ": it has " + llvm::join(names, ", "));
      if (own.has_pipeline_stage() && !stages++)
        firstStage = by;
      for (const onnx::ShardingSpecProto &spec : own.sharding_spec())
        if (succeeded(result))
          result = readSpec(file, spec, node, by, location);
    }
  });
  if (failed(result))
    return failure();
  if (!any && !names.empty())
    emitWarning(location) << "the model has device configuration '" << names.front()
                          << "', but no node says what is cut: the compiler chooses";
  warn(tensorShards, location);
  return success();
}

void DeviceConfigurations::warn(int64_t tensorShards, Location location) const {
  for (const std::string &note : notes)
    emitWarning(location) << note;
  if (values)
    emitWarning(location) << "device configurations shard " << values << " value" << (values > 1 ? "s" : "")
                          << " that are no initializers (" << firstValue
                          << "): the compiler cuts values as those of parameters lead to";
  if (stages)
    emitWarning(location) << "device configurations give " << stages << " node" << (stages > 1 ? "s" : "")
                          << " a pipeline stage (" << firstStage << "): -pp parts a model by cost";
  if (asked.empty())
    return;
  if (tensorShards == 1) {
    emitWarning(location) << "device configurations have no effect here: they go with -tp or -tensor-shards "
                             "of 2 or more";
    return;
  }
  SmallVector<const AskedCut *> others;
  for (const auto &entry : asked)
    if (const AskedCut &cut = entry.second; tensorShards && cut.dim >= 0 && cut.shards != tensorShards)
      others.push_back(&cut);
  // In no order of the table.
  llvm::sort(others, [](const AskedCut *a, const AskedCut *b) { return a->by < b->by; });
  if (!others.empty())
    emitWarning(location) << "device configurations cut " << others.size() << " initializer"
                          << (others.size() > 1 ? "s" : "") << " in " << others.front()->shards << " ("
                          << others.front()->by << "): there are " << tensorShards
                          << " tensor shards along the same dimension";
}

void DeviceConfigurations::warnOfOthers(function_ref<bool(StringRef)> isParameter, Location location) const {
  SmallVector<std::pair<StringRef, StringRef>> others;
  for (const auto &entry : asked)
    if (!isParameter(entry.first()))
      others.emplace_back(entry.first(), entry.second.by);
  llvm::sort(others);
  for (auto [name, by] : others)
    emitWarning(location) << by << " asks for a cut of initializer '" << name
                          << "', which is no parameter of what is computed";
}

} // namespace dsopt::onnx_import
