//===- InitializerUses.h - what unmarked initializers are for ----*- C++ -*-===//
//
// Of an initializer of floats of which nothing says what it is, its use and its values together tell a
// layer's weight from a constant, or leave it open. Values are looked at only where the use leaves it open.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H
#define DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H

#include "Formulas.h"
#include "TensorValues.h"

namespace dsopt::onnx_import {

/// What use and values say.
struct Purpose {
  enum Kind {
    Weight,     ///< of a layer
    Plain,      ///< a normalization's ones or zeros, which one that has no weights has, too
    ClosedForm, ///< of a layer, with values that no initialization makes
    Constant,   ///< never a parameter
    Number,     ///< values that a constant may well have, in a place where a parameter may be
    Tensor,     ///< any other values in such a place
  } kind;
  std::string why;
};

class InitializerUses {
public:
  /// `results` are outputs beside the model's own.
  InitializerUses(ModelFile &file, llvm::ArrayRef<llvm::StringRef> results, mlir::Location location)
      : file(file), location(location), values(file, results, location), formulas(file, values) {}

  Purpose purpose(const onnx::TensorProto &tensor) const;
  /// Whether an initializer decides a shape, an index, a loop or a branch.
  bool decides(llvm::StringRef name) const;

private:
  bool isLayers(const Use &use, const onnx::TensorProto &tensor) const;
  bool isInput(llvm::StringRef value, int steps) const;
  bool isDerived(const Use &use) const;
  bool isBias(const Use &use, const onnx::TensorProto &tensor) const;
  const onnx::TensorProto *weightBeside(const Use &use) const;
  llvm::StringRef formBeside(llvm::ArrayRef<Use> uses) const;
  bool isNormalized(llvm::StringRef value, int steps) const;
  bool isScaledAfter(const Use &use) const;
  bool leadsTo(llvm::StringRef value, llvm::StringRef op, int steps) const;
  bool isScore(llvm::StringRef value, int steps) const;
  bool isMask(llvm::ArrayRef<Use> uses, const TensorValues &elements) const;
  bool isEntry(const Use &use) const;
  bool isEpsilon(const Use &use, double value) const;
  llvm::StringRef constantUse(const Use &use, double value, bool isOne) const;
  llvm::StringRef unlike(llvm::ArrayRef<Use> uses) const;

  ModelFile &file;
  mlir::Location location;
  ValueGraph values;
  Formulas formulas;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H
