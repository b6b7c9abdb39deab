//===- ModelFile.cpp - a model's protobuf, its weights left in the file ----===//

#include "ModelFile.h"

#include "ConstantNodes.h"
#include "Scopes.h"
#include "UpgradeOperators.h"

#include "dsopt/Interfaces/Globs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dsopt::onnx_import {

//===----------------------------------------------------------------------===//
// The wire format
//===----------------------------------------------------------------------===//

namespace {
/// Fields of ModelProto, GraphProto and TensorProto that are looked at here.
enum : uint64_t { kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9 };

/// One field of a message; `text` is the whole field, `payload` what a
/// length-delimited one holds.
struct Field {
  uint64_t number = 0;
  unsigned type = 0;
  StringRef text, payload;
};

/// Reads a message field by field.
class Wire {
public:
  explicit Wire(StringRef message) : at(message.begin()), end(message.end()) {}

  bool done() const { return at == end; }
  /// Where reading stopped, after a failure.
  const char *position() const { return at; }

  bool next(Field &field) {
    const char *begin = at;
    uint64_t key, length = 0;
    if (!varint(key))
      return false;
    field.number = key >> 3;
    field.type = key & 7;
    switch (field.type) {
    case 0:
      if (!varint(length))
        return false;
      length = 0;
      break;
    case 1:
      length = 8;
      break;
    case 2:
      if (!varint(length))
        return false;
      break;
    case 5:
      length = 4;
      break;
    default:
      return false;
    }
    if (field.number == 0 || length > (uint64_t)(end - at))
      return false;
    field.payload = StringRef(at, length);
    at += length;
    field.text = StringRef(begin, at - begin);
    return true;
  }

private:
  bool varint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at == end)
        return false;
      uint64_t byte = (unsigned char)*at++;
      value |= (byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return false;
  }
  const char *at, *end;
};

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out.push_back((char)(value | 128));
  out.push_back((char)value);
}
void appendMessage(std::string &out, uint64_t number, StringRef message) {
  appendVarint(out, number << 3 | 2);
  appendVarint(out, message.size());
  out += message;
}

/// Copies a model without the raw data of its initializers and notes where
/// those are.
struct Scanner {
  StringRef file;
  std::string slim;
  /// For each initializer offset and length of its raw data, or -1.
  std::vector<std::pair<int64_t, int64_t>> raw;
  int64_t failedAt = -1;

  bool fail(const Wire &wire) {
    failedAt = wire.position() - file.begin();
    return false;
  }
  bool scanTensor(StringRef message, std::string &out) {
    raw.push_back({-1, 0});
    Field field;
    for (Wire wire(message); !wire.done();) {
      if (!wire.next(field))
        return fail(wire);
      if (field.number == kTensorRawData && field.type == 2)
        raw.back() = {field.payload.begin() - file.begin(), (int64_t)field.payload.size()};
      else
        out += field.text;
    }
    return true;
  }
  bool scanGraph(StringRef message, std::string &out) {
    Field field;
    for (Wire wire(message); !wire.done();) {
      if (!wire.next(field))
        return fail(wire);
      if (field.number == kGraphInitializer && field.type == 2) {
        std::string tensor;
        if (!scanTensor(field.payload, tensor))
          return false;
        appendMessage(out, kGraphInitializer, tensor);
      } else {
        out += field.text;
      }
    }
    return true;
  }
  bool scan() {
    Field field;
    for (Wire wire(file); !wire.done();) {
      if (!wire.next(field))
        return fail(wire);
      if (field.number == kModelGraph && field.type == 2) {
        std::string graph;
        if (!scanGraph(field.payload, graph))
          return false;
        appendMessage(slim, kModelGraph, graph);
      } else {
        slim += field.text;
      }
    }
    return true;
  }
};

/// What a file that is no model seems to be, by its name, and what to do with it.
StringRef adviceFor(StringRef path) {
  StringRef ending = path.rsplit('.').second;
  return llvm::StringSwitch<StringRef>(ending)
      .Cases({"pt", "pth", "bin", "ckpt"},
             ": its name is that of PyTorch's weights; dsopt.export writes a model "
             "(docs/Export.md)")
      .Case("safetensors", ": its name is that of weights, which -weights takes beside a model")
      .Cases({"npz", "npy"}, ": its name is that of data, which -data takes beside a model")
      .Default("");
}
} // namespace

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// Exports a language model as transformers saves it, of any length.
static std::string exportCommand(StringRef folder) {
  return ("python -c \"import dsopt, torch; from transformers import AutoModelForCausalLM as Model; ids = "
          "torch.ones(1, 64, dtype=int); length = {1: torch.export.Dim.DYNAMIC}; "
          "dsopt.export(Model.from_pretrained('" +
          folder + "'), {'input_ids': ids, 'labels': ids}, '" + folder +
          "/model.onnx', dynamic_shapes={'input_ids': length, 'labels': length})\"")
      .str();
}

std::unique_ptr<ModelFile> ModelFile::open(StringRef path, StringRef weightsFolder, Location location) {
  auto file = std::make_unique<ModelFile>();
  file->path = path.str();
  file->directory = llvm::sys::path::parent_path(path).str();
  if (file->directory.empty())
    file->directory = ".";

  if (llvm::sys::fs::is_directory(path)) {
    auto error = emitError(location) << "'" << path << "' is a folder, expected an ONNX model";
    if (llvm::sys::fs::exists(path + "/config.json"))
      error << "; of transformers' model in it this makes one: " << exportCommand(path);
    return nullptr;
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    emitError(location) << "cannot read '" << path << "': " << buffer.getError().message();
    return nullptr;
  }
  file->buffer = std::move(*buffer);

  StringRef bytes = file->buffer->getBuffer();
  // A model starts with its IR version (field 1) in whatever writer's hands.
  if (bytes.empty() || bytes[0] != 8) {
    emitError(location) << "'" << path << "' is not an ONNX model: "
                        << (bytes.empty() ? "it is empty" : "it does not start with an IR version")
                        << adviceFor(path);
    return nullptr;
  }
  Scanner scanner{bytes, {}, {}, -1};
  if (!scanner.scan()) {
    emitError(location) << "'" << path << "' is truncated or not an ONNX model: a field at byte "
                        << scanner.failedAt << " does not fit into the file's " << bytes.size() << " bytes";
    return nullptr;
  }
  if (!file->proto.ParseFromString(scanner.slim) || !file->proto.has_graph()) {
    emitError(location) << "'" << path << "' is not an ONNX model: "
                        << (file->proto.has_graph() ? "its fields do not follow the schema"
                                                    : "it holds no graph");
    return nullptr;
  }
  if (failed(file->checkVersions(location)))
    return nullptr;
  uniteScopes(file->proto);
  if (failed(inlineFunctions(file->proto, file->version, file->inlined, location)))
    return nullptr;
  forEachNode(file->proto.graph(), [&](const onnx::NodeProto &node) { ++file->written[operatorName(node)]; });
  upgradeOperators(file->proto, file->version);

  std::string name = llvm::sys::path::filename(path).str();
  for (auto [offset, length] : scanner.raw)
    file->extents.push_back(offset < 0 ? Extent() : Extent{name, offset, length, false});
  int own = file->proto.graph().initializer_size();
  liftInitializers(*file->proto.mutable_graph());
  liftConstants(*file->proto.mutable_graph(), file->lifted);
  file->extents.resize(file->extents.size() + file->proto.graph().initializer_size() - own);
  if (failed(file->locateInitializers(weightsFolder, location)))
    return nullptr;
  return file;
}

LogicalResult ModelFile::checkVersions(Location location) {
  int64_t ir = irVersion = proto.ir_version();
  if (ir < kMinIrVersion || ir > kMaxIrVersion)
    return emitError(location) << "'" << path << "' has IR version " << ir << ", expected " << kMinIrVersion
                               << " to " << kMaxIrVersion << "; export it with "
                               << (ir < kMinIrVersion ? "a newer" : "an older") << " version of the exporter";
  version = -1;
  for (const onnx::OperatorSetIdProto &set : proto.opset_import())
    if (isOnnx(set.domain()))
      version = set.version();
  if (version == -1)
    return emitError(location) << "'" << path << "' names no version of ONNX's operators, expected opset "
                               << kMinOpset << " to " << kMaxOpset;
  if (version < kMinOpset || version > kMaxOpset)
    return emitError(location) << "'" << path << "' uses opset " << version << ", expected " << kMinOpset
                               << " to " << kMaxOpset << "; onnx.version_converter.convert_version(model, "
                               << (version < kMinOpset ? 13 : kMaxOpset)
                               << ") may make it one, else export it again with opset_version="
                               << (version < kMinOpset ? 18 : kMaxOpset);
  return success();
}

int64_t ModelFile::writtenOpset(StringRef domain) const { return isOnnx(domain) ? version : opset(domain); }

int64_t ModelFile::opset(StringRef domain) const {
  for (const onnx::OperatorSetIdProto &set : proto.opset_import())
    if (set.domain() == domain || (isOnnx(set.domain()) && isOnnx(domain)))
      return set.version();
  return 0;
}

std::string ModelFile::property(StringRef key) const { return metadataOf(proto, key).str(); }

/// Fills in where external data lies, and the names.
LogicalResult ModelFile::locateInitializers(StringRef weightsFolder, Location location) {
  if ((size_t)proto.graph().initializer_size() != extents.size())
    return emitError(location) << "'" << path
                               << "' is not an ONNX model: its initializers do not follow the schema";
  for (auto [i, tensor] : llvm::enumerate(proto.graph().initializer())) {
    if (tensor.name().empty())
      return emitError(location) << "initializer " << i << " of '" << path << "' has no name";
    if (!byName.try_emplace(tensor.name(), i).second)
      return emitError(location) << "'" << path << "' has two initializers named '" << tensor.name() << "'";
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL)
      continue;
    Extent &extent = extents[i];
    extent = {"", 0, -1, true};
    bool valid = true;
    for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
      if (entry.key() == "location")
        extent.file = entry.value();
      else if (entry.key() == "offset")
        valid &= !StringRef(entry.value()).getAsInteger(10, extent.offset) && extent.offset >= 0;
      else if (entry.key() == "length")
        valid &= !StringRef(entry.value()).getAsInteger(10, extent.bytes) && extent.bytes >= 0;
    }
    if (!valid || extent.file.empty())
      return emitError(location)
             << "initializer '" << tensor.name()
             << "' lies in external data, but location, offset and length are no place in a file";
    StringRef name = extent.file;
    SmallVector<StringRef> parts(llvm::sys::path::begin(name), llvm::sys::path::end(name));
    if (llvm::sys::path::is_absolute(name) || llvm::is_contained(parts, ".."))
      return emitError(location) << "initializer '" << tensor.name() << "' lies in '" << name
                                 << "', expected a file in the model's folder";
    if (!weightsFolder.empty()) {
      SmallString<128> moved(weightsFolder);
      llvm::sys::path::append(moved, name);
      llvm::sys::fs::make_absolute(moved);
      extent.file = moved.str().str();
    }
  }
  return success();
}

int ModelFile::findInitializer(StringRef name) const {
  auto found = byName.find(name);
  return found == byName.end() ? -1 : found->second;
}

void ModelFile::copyInitializer(int initializer, StringRef name) {
  onnx::TensorProto copy = proto.graph().initializer(initializer);
  copy.set_name(name.str());
  *proto.mutable_graph()->add_initializer() = std::move(copy);
  copiedFrom[name] = originalName(proto.graph().initializer(initializer).name()).str();
  byName[name] = extents.size();
  extents.push_back(Extent(extents[initializer]));
}

void ModelFile::bindInput(const onnx::TensorProto &value) {
  auto [index, isNew] = byName.try_emplace(value.name(), extents.size());
  if (isNew) {
    proto.mutable_graph()->add_initializer();
    extents.emplace_back();
  }
  *proto.mutable_graph()->mutable_initializer(index->second) = value;
  extents[index->second] = Extent();
  bound.insert(value.name());
}

std::string ModelFile::pathOf(const Extent &extent) const {
  if (llvm::sys::path::is_absolute(extent.file))
    return extent.file;
  SmallString<128> full(directory);
  llvm::sys::path::append(full, extent.file);
  return full.str().str();
}

const llvm::MemoryBuffer *ModelFile::weights(const Extent &extent, int64_t bytes, StringRef name,
                                             Location location, bool *absent) {
  const llvm::MemoryBuffer *data = buffer.get();
  if (extent.isExternal) {
    std::unique_ptr<llvm::MemoryBuffer> &slot = opened[extent.file];
    if (!slot) {
      std::string full = pathOf(extent);
      auto file = llvm::MemoryBuffer::getFile(full, /*IsText=*/false, /*RequiresNullTerminator=*/false);
      if (!file) {
        if (absent) {
          *absent = true;
          return nullptr;
        }
        emitError(location) << "cannot read '" << full << "', which holds initializer '" << name
                            << "': " << file.getError().message();
        return nullptr;
      }
      slot = std::move(*file);
    }
    data = slot.get();
  }
  int64_t size = data->getBufferSize();
  if (extent.offset > size || bytes > size - extent.offset) {
    emitError(location) << "'" << extent.file << "' is too short: it has " << size << " bytes, initializer '"
                        << name << "' needs " << bytes << " from byte " << extent.offset << " on";
    return nullptr;
  }
  return data;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string nodeName(const onnx::NodeProto &node) {
  if (!node.name().empty() || node.output_size() == 0)
    return node.name();
  return node.output(0);
}

std::string operatorName(const onnx::NodeProto &node) {
  StringRef upgraded = metadataOf(node, kUpgradedKey);
  std::string name = upgraded.empty() ? node.op_type() : upgraded.str();
  return node.domain().empty() ? name : node.domain() + "." + name;
}

std::string ModelFile::describe(const onnx::NodeProto &node) const {
  int64_t opset = writtenOpset(node.domain());
  std::string place = nodePlace(node);
  return "node '" + nodeName(node) + "' (" + operatorName(node) +
         (opset ? ", opset " + std::to_string(opset) : "") + ")" + (place.empty() ? "" : " of " + place);
}

std::string nodePlace(const onnx::NodeProto &node) {
  StringRef module = metadataOf(node, kModuleKey), source = metadataOf(node, kSourceKey);
  if (module.empty())
    return source.str();
  return ("module '" + module + "'" + (source.empty() ? "" : " (" + source + ")")).str();
}

bool matches(ArrayRef<std::string> globs, StringRef name) {
  return llvm::any_of(globs, [&](StringRef text) {
    auto glob = Glob::parse("", text, [] { return InFlightDiagnostic(); });
    return succeeded(glob) && glob->matches(name);
  });
}

LogicalResult checkGlobs(const ModelFile &file, StringRef option, ArrayRef<std::string> globs,
                         Location location) {
  for (const std::string &glob : globs) {
    auto pattern = Glob::parse(option, glob, [&] { return emitError(location); });
    if (failed(pattern))
      return failure();
    SmallVector<StringRef> names;
    for (const onnx::TensorProto &tensor : file.graph().initializer())
      names.push_back(tensor.name());
    if (llvm::none_of(names, [&](StringRef name) { return pattern->matches(name); }))
      return emitError(location) << "-" << option << "=" << glob << " matches no initializer of the model"
                                 << nearMatches(glob, names);
  }
  return success();
}

LogicalResult untieInitializers(ModelFile &file, ArrayRef<std::string> globs, Location location) {
  if (failed(checkGlobs(file, "untie", globs, location)))
    return failure();
  if (globs.empty())
    return success();
  // Exporters share an initializer through Identity nodes as well: each reader
  // of such a copy is a use of the initializer.
  llvm::StringMap<std::string> source;
  llvm::StringMap<int> uses;
  LogicalResult result = success();
  forEachNode(*file.model().mutable_graph(), [&](onnx::NodeProto &node) {
    bool isIdentity = node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1;
    for (std::string &input : *node.mutable_input()) {
      auto copy = source.find(input);
      std::string root = copy == source.end() ? input : copy->second;
      int initializer = file.findInitializer(root);
      if (initializer < 0 || !matches(globs, root))
        continue;
      if (isIdentity) {
        source[node.output(0)] = root;
        continue;
      }
      int use = uses[root]++;
      input = use == 0 ? root : root + "." + std::to_string(use);
      if (use == 0 || failed(result))
        continue;
      if (file.findInitializer(input) >= 0)
        result = emitError(location) << "-untie cannot name a copy of '" << root << "' '" << input
                                     << "': the model has that name already";
      else
        file.copyInitializer(initializer, input);
    }
  });
  return result;
}

} // namespace dsopt::onnx_import
