//===- TensorValues.h - the elements of an initializer -----------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_TENSORVALUES_H
#define DSOPT_LIB_IMPORT_ONNX_TENSORVALUES_H

#include "ModelFile.h"

#include "mlir/IR/BuiltinTypes.h"

namespace dsopt::onnx_import {

/// The elements of an initializer of floats; none where its file is absent.
class TensorValues {
public:
  TensorValues(ModelFile &file, const onnx::TensorProto &tensor, mlir::RankedTensorType type,
               mlir::Location location);

  int64_t size() const { return bytes.size() / width; }
  double operator[](int64_t index) const;
  template <typename Holds> bool all(Holds holds) const {
    for (int64_t i = 0; i < size(); ++i)
      if (!holds((*this)[i]))
        return false;
    return size() > 0;
  }
  template <typename Holds> bool any(Holds holds) const {
    return !all([&](double value) { return !holds(value); }) && size() > 0;
  }
  /// One element counts.
  bool areEqual() const {
    return all([&](double value) { return value == (*this)[0]; });
  }
  /// How far a number of this type may be from what it stands for.
  double precision() const { return width > 2 ? 1e-6 : type.isBF16() ? 1e-2 : 1e-3; }

private:
  mlir::Type type;
  int64_t width;
  std::string typed;
  llvm::StringRef bytes;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_TENSORVALUES_H
