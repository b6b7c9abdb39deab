//===- Initializers.h - what initializers become -----------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H
#define DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H

#include "DeviceConfigurations.h"
#include "ParameterRules.h"

#include "dsopt/Dialect/Graph/Graph.h"

#include <map>

namespace dsopt::onnx_import {

/// What an initializer becomes.
struct Initializer {
  /// Null: it is the constant.
  graph::ParameterOp parameter;
  mlir::DenseElementsAttr constant;
  /// Its type in the model, where it is computed in f32 instead.
  mlir::Type narrow;
};

/// Makes parameters and constants of the initializers that are asked for, and keeps what was decided.
class Initializers {
public:
  Initializers(ModelFile &file, const ImportOptions &options, mlir::ModuleOp module)
      : file(file), options(options), module(module), rules(file, options, module.getLoc()) {}

  /// Reads what decides; see ParameterRules.
  mlir::LogicalResult readRules() {
    return mlir::success(mlir::succeeded(rules.read()) &&
                         mlir::succeeded(configurations.read(file, options.tensorShards, module.getLoc())));
  }
  /// f16 or bf16, if all parameters among the `needed` initializers are of that type.
  mlir::Type modelType(const llvm::StringSet<> &needed);
  /// Makes what the initializer of this index becomes.
  mlir::FailureOr<Initializer> make(int index);
  /// What would become of them all, if those that are `needed` were made; makes none.
  std::vector<ImportReport::Initializer> foresee(const llvm::StringSet<> &needed);
  /// Whether an initializer of this type is made a constant: its values are read then.
  bool isConstant(int index, mlir::RankedTensorType type) const;
  /// Reports what became of each float initializer and of other weights. Where there is a loss, warns of
  /// those that may be parameters or constants: what was decided, why, and how to decide.
  void finish();

private:
  /// The row of an initializer that became this.
  ImportReport::Initializer rowOf(int index, mlir::RankedTensorType type, ImportReport::Use use) const;
  std::vector<ImportReport::Initializer> report();
  /// Calls `f` with the index and type of each initializer that has one.
  void forEachTyped(llvm::function_ref<void(int, mlir::RankedTensorType)> f);
  mlir::FailureOr<graph::ParameterOp> makeParameter(int index, mlir::RankedTensorType type,
                                                    const ParameterRule &rule);
  mlir::FailureOr<mlir::DenseElementsAttr> makeConstant(int index, mlir::RankedTensorType type);
  /// A symbol that nothing else has: the name, if it can be.
  std::string symbolOf(mlir::StringRef name);
  /// Writes the bytes beside the output; the file's name holds their hash.
  mlir::FailureOr<Extent> spill(mlir::StringRef bytes);

  ModelFile &file;
  const ImportOptions &options;
  mlir::ModuleOp module;
  ParameterRules rules;
  DeviceConfigurations configurations;
  /// By index, of those that were made: the parameter's symbol, empty for a constant.
  std::map<int, std::string> made;
  llvm::StringSet<> symbols;
};

/// Warns where one float initializer, whose elements are equal as fresh weights' are, is the scale or bias of
/// two operations.
void warnOfMergedInitializers(ModelFile &file, mlir::ArrayRef<const onnx::NodeProto *> nodes,
                              mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H
