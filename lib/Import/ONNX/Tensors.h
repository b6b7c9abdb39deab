//===- Tensors.h - ONNX types and tensors as MLIR's --------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_TENSORS_H
#define DSOPT_LIB_IMPORT_ONNX_TENSORS_H

#include "ModelFile.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dsopt::onnx_import {

/// No tensor of a model may have more elements, nor a larger dimension.
inline constexpr int64_t kMaxElements = int64_t(1) << 48;

/// Whether a tensor of this shape is of a size that can be meant seriously.
bool isSaneShape(llvm::ArrayRef<int64_t> shape);

/// Which of ONNX's types may be meant. The small ones (floats of 8 and 4 bits, integers of 4 and 2)
/// only come about within a model: no parameter is stored in one.
enum class Types { Stored, WithSmall };

/// Whether ONNX's type is one of floats, the small ones apart.
inline bool isFloatType(int64_t dataType) {
  using Tensor = onnx::TensorProto;
  return dataType == Tensor::FLOAT || dataType == Tensor::DOUBLE || dataType == Tensor::FLOAT16 ||
         dataType == Tensor::BFLOAT16;
}

/// How many elements a tensor has.
inline int64_t numElements(const onnx::TensorProto &tensor) {
  int64_t elements = 1;
  for (int64_t size : tensor.dims())
    elements *= size;
  return elements;
}

/// The type of elements of ONNX's type `dataType`; null where the graph dialect has none, with an error at
/// `location` about `what` where these are given.
mlir::Type elementType(int64_t dataType, mlir::MLIRContext *context, Types allowed = Types::Stored);
mlir::Type elementType(int64_t dataType, const llvm::Twine &what, mlir::Location location,
                       Types allowed = Types::Stored);

/// The type that values of the model's type `element` are computed in: f32 for floats of at most
/// 16 bits, 8 bits for smaller integers, else the same.
mlir::Type computedType(mlir::Type element);
inline bool isNarrow(mlir::Type element) { return element && computedType(element) != element; }

/// The type of an initializer or an attribute; null where it can be none. Whoever only looks asks for it, for
/// what is wrong is said once, by whoever reads the tensor for good: tensorType().
mlir::RankedTensorType possibleType(const onnx::TensorProto &tensor, mlir::MLIRContext *context,
                                    Types allowed = Types::Stored);

/// The same; null with an error.
mlir::RankedTensorType tensorType(const onnx::TensorProto &tensor, const llvm::Twine &what,
                                  mlir::Location location, Types allowed = Types::Stored);

/// The bytes that the typed fields of `tensor` stand for: little-endian,
/// row-major. Fails with an error where their number is not the shape's.
llvm::FailureOr<std::string> typedBytes(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                        const llvm::Twine &what, mlir::Location location);

/// A constant of these bytes (a bool takes one).
mlir::DenseElementsAttr constantOf(mlir::RankedTensorType type, llvm::StringRef bytes);

/// A constant of a narrow type as one of the type that it is computed in.
mlir::DenseElementsAttr widened(mlir::DenseElementsAttr constant);

/// A tensor that lies in the protobuf as a whole (an attribute of a node).
mlir::DenseElementsAttr constantOf(const onnx::TensorProto &tensor, const llvm::Twine &what,
                                   mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_TENSORS_H
