//===- InitializerUses.h - constants that nothing marks ----------*- C++ -*-===//
//
// In a file without marks, an initializer of floats is a parameter unless its use
// and its values together say that it is none. Values are looked at only where the
// use leaves it open.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H
#define DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H

#include "ModelFile.h"

#include "mlir/IR/BuiltinTypes.h"

namespace dsopt::onnx_import {

class InitializerUses {
public:
  InitializerUses(ModelFile &file, mlir::Location location);

  /// What an unmarked initializer of floats is instead of a parameter; empty where it may be one:
  ///   "mask"             added to or multiplied with what it hides
  ///   "table of sines"   rows of sines and cosines of equally spaced angles
  ///   "number"           one element that an operator means as a constant: an exponent, a bound, an
  ///                      epsilon, a factor of GELU or of attention's scores
  llvm::StringRef constant(const onnx::TensorProto &tensor);

private:
  /// An operator that reads a value as this input.
  struct Use {
    const onnx::NodeProto *node;
    int input;
  };
  /// The elements of an initializer; none where its file is absent.
  class Values;

  void collect(llvm::StringRef name, std::vector<Use> &uses) const;
  bool leadsTo(llvm::StringRef name, llvm::StringRef op, int steps) const;
  bool isNear(const onnx::NodeProto &node, llvm::StringRef op, int steps) const;
  bool isFactorOfGelu(const onnx::NodeProto &node, double value) const;
  bool isMask(llvm::ArrayRef<Use> uses, Values &values) const;
  bool isNumber(const Use &use, double value) const;

  ModelFile &file;
  mlir::Location location;
  llvm::StringMap<std::vector<Use>> readers;
  llvm::StringMap<const onnx::NodeProto *> producers;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_INITIALIZERUSES_H
