//===- ParameterRules.h - which initializers are trained ---------*- C++ -*-===//
//
// What the options say comes first, then what the file says (dsopt.export's map, marks and signature of
// PyTorch's exporter), then what an initializer is used for and its values, then its name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_PARAMETERRULES_H
#define DSOPT_LIB_IMPORT_ONNX_PARAMETERRULES_H

#include "InitializerUses.h"

#include "dsopt/Import/ImportONNX.h"
#include "llvm/ADT/StringSet.h"

namespace dsopt::onnx_import {

enum class Role {
  Trained,
  Frozen,   ///< a weight that is not trained
  Buffer,   ///< part of the model's state, though no weight; a constant if it is small
  Constant, ///< no part of what is saved
};

/// What was decided about an initializer, and the rule that decided.
struct ParameterRule {
  Role role;
  std::string why;
  /// Whether it may well be otherwise, which is said.
  bool inDoubt = false;
};

class ParameterRules {
public:
  ParameterRules(ModelFile &file, const ImportOptions &options, mlir::Location location)
      : file(file), options(options), location(location) {}

  /// Reads what the file says. Emits an error where an option names nothing, or what cannot be trained.
  mlir::LogicalResult read();
  /// About an initializer of this element type.
  ParameterRule decide(const onnx::TensorProto &tensor, mlir::Type element) const;
  /// Whether an initializer decides a shape, an index, a loop or a branch.
  bool isDeciding(llvm::StringRef name) const { return uses->decides(name); }
  /// Whether micro-batches are folded into this initializer.
  bool isFolded(llvm::StringRef name) const { return folded.contains(name); }
  /// Whether dsopt.export's map says that PyTorch has it the other way round.
  bool isTransposed(llvm::StringRef name) const { return transposed.contains(name); }

private:
  void readMap();
  void readMarks();
  void readSignature();
  void readUses();
  mlir::LogicalResult checkTrained() const;
  /// Without the options.
  ParameterRule decideAlone(const onnx::TensorProto &tensor, mlir::Type element) const;
  /// What the file says of an initializer of this name; nothing where it does not.
  std::optional<ParameterRule> saidByFile(llvm::StringRef name) const;
  /// What an exporter made of others is what they are; nothing where it does not say of what.
  std::optional<ParameterRule> saidOfSources(llvm::StringRef name) const;
  ParameterRule decideByUse(const onnx::TensorProto &tensor, mlir::Type element) const;

  ModelFile &file;
  const ImportOptions &options;
  mlir::Location location;
  /// Of dsopt.export's map: whether its rows say what each initializer is, and what they say.
  bool hasRoles = false;
  llvm::StringMap<ParameterRule> roles;
  /// PyTorch's marks, by name; whether it marks parameters in this file.
  bool hasMarks = false;
  llvm::StringMap<std::string> marks;
  /// What PyTorch's optimizer computed an initializer from.
  llvm::StringMap<std::string> foldedFrom;
  /// Initializers by what they are used for.
  llvm::StringSet<> statistics, folded, sizes, classWeights, transposed;
  std::unique_ptr<InitializerUses> uses;
  /// What was decided without the options.
  mutable llvm::StringMap<ParameterRule> decided;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_PARAMETERRULES_H
