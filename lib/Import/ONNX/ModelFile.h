//===- ModelFile.h - a model's protobuf, its weights left in the file -*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_MODELFILE_H
#define DSOPT_LIB_IMPORT_ONNX_MODELFILE_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include "onnx-ml.pb.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::onnx_import {

inline constexpr int64_t kMinOpset = 7, kMaxOpset = 28;
inline constexpr int64_t kMinIrVersion = 3, kMaxIrVersion = 14;

/// Whether operators of a domain are ONNX's own, which has two names.
inline bool isOnnx(llvm::StringRef domain) { return domain.empty() || domain == "ai.onnx"; }

/// Calls `build`. Its first error is not emitted but becomes `problem`.
template <typename F>
mlir::LogicalResult withoutErrors(std::string &problem, mlir::Location location, F build) {
  mlir::ScopedDiagnosticHandler handler(location.getContext(), [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return mlir::failure();
    if (problem.empty())
      problem = diagnostic.str();
    return mlir::success();
  });
  return mlir::success(succeeded(build()));
}

/// Where an initializer's plain bytes are.
struct Extent {
  /// Relative to the model's folder; empty where the bytes are in no file as
  /// they are (typed fields of the protobuf).
  std::string file;
  int64_t offset = 0;
  /// -1: from the offset to the end of the file.
  int64_t bytes = 0;
  bool isExternal = false;
};

/// A model file: mapped, scanned for the places of raw data, and parsed without
/// the raw data of initializers that are not small.
class ModelFile {
public:
  /// Opens `path`. Emits an error at `location` and returns null where it is no
  /// model that can be read. External data lies in `weightsFolder`, if not empty.
  static std::unique_ptr<ModelFile> open(llvm::StringRef path, llvm::StringRef weightsFolder,
                                         mlir::Location location);

  const onnx::ModelProto &model() const { return proto; }
  onnx::ModelProto &model() { return proto; }
  /// The model's functions, and how many calls of each were inlined.
  const std::map<std::string, int64_t> &inlinedFunctions() const { return inlined; }
  const onnx::GraphProto &graph() const { return proto.graph(); }
  /// The version of ONNX's operators, and of another domain's; 0 where the model names none.
  int64_t opset() const { return opset(""); }
  int64_t opset(llvm::StringRef domain) const;
  /// The same as the file has it: nodes of old versions are upgraded when it is opened.
  int64_t writtenOpset(llvm::StringRef domain) const;
  int64_t writtenIrVersion() const { return irVersion; }
  /// How many nodes of each operator the file has, functions' in the place of their calls.
  const std::map<std::string, int64_t> &operators() const { return written; }
  llvm::StringRef folder() const { return directory; }
  /// Where external data lies.
  std::string pathOf(const Extent &extent) const;
  /// "node 'x' (Op, opset 17)", for messages.
  std::string describe(const onnx::NodeProto &node) const;

  /// What the metadata say under a key; empty where they say nothing.
  std::string property(llvm::StringRef key) const;

  /// The index of an initializer; -1 if there is none of that name.
  int findInitializer(llvm::StringRef name) const;
  /// Whether the value of a Constant node became this initializer.
  bool isLifted(int initializer) const {
    return lifted.contains(originalName(proto.graph().initializer(initializer).name()));
  }
  /// Makes an initializer of an input's name, in the place of one that the file has.
  void bindInput(const onnx::TensorProto &value);
  bool isBound(llvm::StringRef initializer) const { return bound.contains(originalName(initializer)); }
  const Extent &extent(int initializer) const { return extents[initializer]; }
  /// Adds a copy of an initializer under another name; its bytes are the same.
  void copyInitializer(int initializer, llvm::StringRef name);
  /// What an initializer was called before it was copied.
  llvm::StringRef originalName(llvm::StringRef name) const {
    auto found = copiedFrom.find(name);
    return found == copiedFrom.end() ? name : llvm::StringRef(found->second);
  }

  /// The bytes of a file of weights, mapped; null with an error where `extent`
  /// does not lie in it. `absent` is set instead where there is no such file.
  const llvm::MemoryBuffer *weights(const Extent &extent, int64_t bytes, llvm::StringRef name,
                                    mlir::Location location, bool *absent = nullptr);

private:
  mlir::LogicalResult checkVersions(mlir::Location location);
  mlir::LogicalResult locateInitializers(llvm::StringRef weightsFolder, mlir::Location location);

  std::string path, directory;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  onnx::ModelProto proto;
  std::map<std::string, int64_t> inlined, written;
  /// Of ONNX's operators in the file, and of the file's format.
  int64_t version = 0, irVersion = 0;
  std::vector<Extent> extents;
  llvm::StringMap<int> byName;
  llvm::StringMap<std::string> copiedFrom;
  llvm::StringSet<> lifted, bound;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> opened;
};

/// What is wrong with a call of one of the model's own functions that is no operator's node.
inline constexpr llvm::StringLiteral kProblemKey = "dsopt.problem";
/// Replaces calls of the model's own functions by their nodes and counts them. Calls for which that is
/// impossible stay, and say why under `kProblemKey`. Emits an error where all nodes are too many.
mlir::LogicalResult inlineFunctions(onnx::ModelProto &model, int64_t opset,
                                    std::map<std::string, int64_t> &counts, mlir::Location location);

/// Gives each use of the initializers that the globs name a copy of its own: the
/// first keeps the name, others get `.1`, `.2` and so on. Emits an error where a
/// glob matches no initializer.
mlir::LogicalResult untieInitializers(ModelFile &file, llvm::ArrayRef<std::string> globs,
                                      mlir::Location location);

/// A name for messages: the node's own, else its first output's.
std::string nodeName(const onnx::NodeProto &node);
/// Its operator as the file names it.
std::string operatorName(const onnx::NodeProto &node);
/// Metadata by which the Python package says where a node comes from (a module's path, a line of
/// source), which of PyTorch's operators it was, and what the parameters are called in PyTorch.
inline constexpr llvm::StringLiteral kModuleKey = "dsopt.module", kSourceKey = "dsopt.source",
                                     kOperatorKey = "dsopt.operator", kParametersKey = "dsopt.parameters";
/// What the metadata of a model, a node or a value say under a key; empty where they say nothing.
template <typename Proto> llvm::StringRef metadataOf(const Proto &proto, llvm::StringRef key) {
  for (const onnx::StringStringEntryProto &entry : proto.metadata_props())
    if (entry.key() == key)
      return entry.value();
  return "";
}
/// "module 'encoder.layers.0' (model.py:42)", or what is known of it; empty where nothing is.
std::string nodePlace(const onnx::NodeProto &node);

/// Whether one of the globs matches.
bool matches(llvm::ArrayRef<std::string> globs, llvm::StringRef name);
/// Emits an error where a glob is malformed or matches no initializer.
mlir::LogicalResult checkGlobs(const ModelFile &file, llvm::StringRef option,
                               llvm::ArrayRef<std::string> globs, mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_MODELFILE_H
