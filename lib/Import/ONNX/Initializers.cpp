//===- Initializers.cpp - which initializers are parameters ----------------===//

#include "Initializers.h"

#include "NodeBuilder.h"
#include "Tensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace mlir;

namespace dsopt::onnx_import {

/// A parameter is hashed in pieces of this size.
static constexpr int64_t kChunkBytes = 1 << 20;
/// Frozen floats up to this size take part in folding.
static constexpr int64_t kFoldedFloatBytes = 1 << 10;
/// Integers and bools up to this size are constants.
static constexpr int64_t kFoldedIntegerBytes = 1 << 20;

/// torch.export's mark of what an initializer was.
static constexpr StringLiteral kKindKey = "pkg.torch.export.graph_signature.InputSpec.kind";

LogicalResult Initializers::classify() {
  Location location = module.getLoc();
  for (const onnx::ValueInfoProto &info : file.graph().value_info())
    for (const onnx::StringStringEntryProto &entry : info.metadata_props())
      if (entry.key() == kKindKey && entry.value() == "BUFFER")
        buffers.insert(info.name());
  // Where an exporter has merged equal initializers it writes an Identity for the others.
  llvm::StringMap<StringRef> copies;
  for (const onnx::NodeProto &node : file.graph().node())
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1)
      copies[node.output(0)] = node.input(0);
  auto original = [&](StringRef name) {
    for (size_t left = copies.size(); left && copies.count(name); --left)
      name = copies[name];
    return name;
  };
  for (const onnx::NodeProto &node : file.graph().node())
    if (node.op_type() == "BatchNormalization")
      for (int i : {3, 4})
        if (i < node.input_size()) {
          statistics.insert(original(node.input(i)));
          if (NodeBuilder::normalizesByBatch(node, file.opset(), options.batchNorm))
            folded.insert(original(node.input(i)));
        }
  // Numbers that decide shapes.
  for (const onnx::NodeProto &node : file.graph().node())
    if (node.op_type() == "Resize")
      for (int i : {1, 2})
        if (i < node.input_size())
          sizes.insert(node.input(i));
  if (failed(checkGlobs(file, "freeze", options.freeze, location)) ||
      failed(checkGlobs(file, "train", options.train, location)))
    return failure();
  // Every glob of -train must name something that can be trained.
  for (const std::string &glob : options.train) {
    const onnx::TensorProto *integer = nullptr;
    bool trains = false;
    for (const onnx::TensorProto &tensor : file.graph().initializer()) {
      if (!matches(glob, tensor.name()))
        continue;
      Type element = elementType(tensor.data_type(), "initializer '" + tensor.name() + "'", location);
      if (!element)
        return failure();
      if (isa<FloatType>(element))
        trains = true;
      else
        integer = &tensor;
    }
    if (!trains)
      return emitError(location) << "-train=" << glob << " names initializer '" << integer->name()
                                 << "' of type "
                                 << onnx::TensorProto::DataType_Name(
                                        (onnx::TensorProto::DataType)integer->data_type())
                                 << ", expected one of floating point";
  }
  return success();
}

StringRef Initializers::whyFrozen(const onnx::TensorProto &tensor, RankedTensorType type) const {
  if (!isa<FloatType>(type.getElementType()))
    return type.getElementType().isInteger(1) ? "bool" : "integer";
  if (matches(options.freeze, tensor.name()))
    return "-freeze";
  if (matches(options.train, tensor.name()))
    return "";
  if (type.getRank() == 0 || type.getNumElements() <= 1)
    return "single element";
  if (sizes.contains(tensor.name()))
    return "size";
  if (statistics.contains(tensor.name()))
    return "running statistic";
  return buffers.contains(tensor.name()) ? "buffer" : "";
}

FailureOr<Initializer> Initializers::make(int index) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  Location location = module.getLoc();
  std::string what = "initializer '" + tensor.name() + "'";
  RankedTensorType type = tensorType(tensor, what, location);
  if (!type)
    return failure();

  StringRef why = whyFrozen(tensor, type);
  bool isFloat = isa<FloatType>(type.getElementType());
  bool isFolded =
      !why.empty() && graph::numBytes(type) <= (isFloat ? kFoldedFloatBytes : kFoldedIntegerBytes);
  // What was frozen by hand stays a weight, whatever its size.
  if (why == "-freeze" && type.getNumElements() > 1)
    isFolded = false;
  // What training changes is no constant.
  if (folded.contains(tensor.name()))
    isFolded = false;
  if (isFolded || type.getNumElements() == 0) {
    FailureOr<DenseElementsAttr> constant = makeConstant(index, type);
    return failed(constant) ? FailureOr<Initializer>() : Initializer{{}, *constant};
  }
  FailureOr<graph::ParameterOp> parameter = makeParameter(index, type, why);
  return failed(parameter) ? FailureOr<Initializer>() : Initializer{*parameter, {}};
}

/// Checks that an extent has the type's size.
static LogicalResult checkBytes(const Extent &extent, RankedTensorType type, StringRef name,
                                Location location) {
  int64_t expected = graph::numBytes(type);
  if (extent.bytes == expected || (extent.isExternal && extent.bytes == -1))
    return success();
  return emitError(location) << "initializer '" << name << "' has " << extent.bytes
                             << " bytes of data, expected " << expected << " for " << type;
}

FailureOr<DenseElementsAttr> Initializers::makeConstant(int index, RankedTensorType type) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  const Extent &extent = file.extent(index);
  Location location = module.getLoc();
  int64_t bytes = graph::numBytes(type);
  if (type.getNumElements() == 0)
    return constantOf(type, {});
  if (extent.file.empty()) {
    FailureOr<std::string> data = typedBytes(tensor, type, "initializer '" + tensor.name() + "'", location);
    return failed(data) ? FailureOr<DenseElementsAttr>() : constantOf(type, *data);
  }
  if (failed(checkBytes(extent, type, tensor.name(), location)))
    return failure();
  const llvm::MemoryBuffer *data = file.weights(extent, bytes, tensor.name(), location);
  if (!data)
    return failure();
  return constantOf(type, data->getBuffer().substr(extent.offset, bytes));
}

FailureOr<Extent> Initializers::spill(StringRef bytes) {
  Location location = module.getLoc();
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  std::string name =
      llvm::utohexstr(hash.high64, true, 16) + llvm::utohexstr(hash.low64, true, 16) + ".dsopt-weights";
  SmallString<128> path(options.spillFolder);
  llvm::sys::path::append(path, name);
  llvm::sys::fs::make_absolute(path);
  Extent extent{path.str().str(), 0, (int64_t)bytes.size(), true};
  uint64_t present;
  if (options.weights == WeightFiles::Ignore ||
      (!llvm::sys::fs::file_size(path, present) && present == bytes.size()))
    return extent;
  // Under another name first: nobody ever sees half a file.
  SmallString<128> temporary(path);
  temporary += ".%%%%%%";
  int descriptor;
  std::error_code error = llvm::sys::fs::createUniqueFile(temporary, descriptor, temporary);
  if (!error) {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
    if (!error)
      error = llvm::sys::fs::rename(temporary, path);
    if (error)
      llvm::sys::fs::remove(temporary);
  }
  if (error)
    return emitError(location) << "cannot write '" << path << "': " << error.message();
  return extent;
}

FailureOr<graph::ParameterOp> Initializers::makeParameter(int index, RankedTensorType type, StringRef why) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  const std::string &name = tensor.name();
  Location location = module.getLoc();
  int64_t bytes = graph::numBytes(type);
  Extent extent = file.extent(index);
  if (extent.file.empty()) {
    FailureOr<std::string> data = typedBytes(tensor, type, "initializer '" + name + "'", location);
    FailureOr<Extent> spilled = failed(data) ? FailureOr<Extent>() : spill(*data);
    if (failed(spilled))
      return failure();
    extent = *spilled;
  } else if (failed(checkBytes(extent, type, name, location))) {
    return failure();
  }

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  IntegerAttr fileBytes;
  DenseI64ArrayAttr chunks;
  if (options.weights != WeightFiles::Ignore) {
    bool absent = false;
    bool mayBeAbsent = options.weights == WeightFiles::IfPresent;
    const llvm::MemoryBuffer *data =
        file.weights(extent, bytes, name, location, mayBeAbsent ? &absent : nullptr);
    if (!data && !absent)
      return failure();
    if (data) {
      StringRef content = data->getBuffer().substr(extent.offset, bytes);
      SmallVector<int64_t> hashes;
      for (int64_t at = 0; at < bytes; at += kChunkBytes) {
        StringRef chunk = content.substr(at, kChunkBytes);
        hashes.push_back((int64_t)XXH3_64bits(chunk.data(), chunk.size()));
      }
      chunks = builder.getDenseI64ArrayAttr(hashes);
      fileBytes = builder.getI64IntegerAttr(data->getBufferSize());
    }
  }
  auto parameter = graph::ParameterOp::create(
      builder, location, builder.getStringAttr(name), TypeAttr::get(type), builder.getStringAttr(extent.file),
      builder.getI64IntegerAttr(extent.offset), builder.getI64IntegerAttr(bytes), fileBytes, chunks,
      why.empty() ? UnitAttr() : builder.getUnitAttr(),
      why.empty() ? StringAttr() : builder.getStringAttr(why));
  return parameter;
}

void warnOfMergedInitializers(const ModelFile &file, ArrayRef<const onnx::NodeProto *> nodes,
                              Location location) {
  llvm::StringMap<int> uses;
  llvm::StringMap<std::string> source;
  std::vector<std::string> merged;
  auto use = [&](const onnx::NodeProto &node, int input) {
    if (input >= node.input_size())
      return;
    auto copy = source.find(node.input(input));
    std::string name = copy == source.end() ? node.input(input) : copy->second;
    int initializer = file.findInitializer(name);
    if (initializer < 0)
      return;
    const onnx::TensorProto &tensor = file.graph().initializer(initializer);
    bool isVector = tensor.dims_size() == 1 && tensor.dims(0) > 1;
    bool isFloat =
        tensor.data_type() == onnx::TensorProto::FLOAT || tensor.data_type() == onnx::TensorProto::DOUBLE ||
        tensor.data_type() == onnx::TensorProto::FLOAT16 || tensor.data_type() == onnx::TensorProto::BFLOAT16;
    if (isVector && isFloat && ++uses[name] == 2)
      merged.push_back(name);
  };
  for (const onnx::NodeProto *node : nodes) {
    StringRef op = node->op_type();
    if (op == "Identity" && node->input_size() == 1 && node->output_size() == 1) {
      auto copy = source.find(node->input(0));
      source[node->output(0)] = copy == source.end() ? node->input(0) : copy->second;
    } else if (op == "LayerNormalization" || op == "BatchNormalization") {
      use(*node, 1);
      use(*node, 2);
    } else if (op == "Gemm") {
      use(*node, 2);
    } else if (op == "Add") {
      use(*node, 0);
      use(*node, 1);
    }
  }
  if (merged.empty())
    return;
  InFlightDiagnostic warning = emitWarning(location);
  warning << "initializer '" << merged.front() << "' is the scale or bias of " << uses[merged.front()]
          << " operations";
  if (merged.size() > 1)
    warning << ", and " << merged.size() - 1 << " others are shared too";
  warning << ": exporters merge equal fresh weights, which are then trained as one; -untie='"
          << merged.front() << "' separates them, so does exporting with optimize=False";
}

} // namespace dsopt::onnx_import
