//===- Tensors.cpp - ONNX types and tensors as MLIR's ----------------------===//

#include "Tensors.h"

#include "dsopt/Dialect/Graph/Graph.h"

#include <cstring>

using namespace mlir;

namespace dsopt::onnx_import {

bool isSaneShape(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMaxElements || (size > 0 && elements > kMaxElements / size))
      return false;
    // An empty tensor's other dimensions still count.
    elements *= size == 0 ? 1 : size;
  }
  return true;
}

/// Null for what is no number or bool.
static Type numberType(int64_t dataType, MLIRContext *context) {
  switch (dataType) {
  case onnx::TensorProto::FLOAT:
    return Float32Type::get(context);
  case onnx::TensorProto::DOUBLE:
    return Float64Type::get(context);
  case onnx::TensorProto::FLOAT16:
    return Float16Type::get(context);
  case onnx::TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case onnx::TensorProto::BOOL:
    return IntegerType::get(context, 1);
  case onnx::TensorProto::INT8:
    return IntegerType::get(context, 8);
  case onnx::TensorProto::INT16:
    return IntegerType::get(context, 16);
  case onnx::TensorProto::INT32:
    return IntegerType::get(context, 32);
  case onnx::TensorProto::INT64:
    return IntegerType::get(context, 64);
  case onnx::TensorProto::UINT8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case onnx::TensorProto::UINT16:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case onnx::TensorProto::UINT32:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case onnx::TensorProto::UINT64:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case onnx::TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case onnx::TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case onnx::TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case onnx::TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case onnx::TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case onnx::TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case onnx::TensorProto::INT4:
    return IntegerType::get(context, 4);
  case onnx::TensorProto::UINT4:
    return IntegerType::get(context, 4, IntegerType::Unsigned);
  case onnx::TensorProto::INT2:
    return IntegerType::get(context, 2);
  case onnx::TensorProto::UINT2:
    return IntegerType::get(context, 2, IntegerType::Unsigned);
  }
  return {};
}

Type elementType(int64_t dataType, MLIRContext *context, Types allowed) {
  Type type = numberType(dataType, context);
  bool isSmall = isNarrow(type) && type.getIntOrFloatBitWidth() < 16;
  return allowed == Types::WithSmall || !isSmall ? type : Type();
}

Type elementType(int64_t dataType, const Twine &what, Location location, Types allowed) {
  if (Type type = elementType(dataType, location.getContext(), allowed))
    return type;
  std::string name = onnx::TensorProto::DataType_IsValid(dataType)
                         ? onnx::TensorProto::DataType_Name((onnx::TensorProto::DataType)dataType)
                         : std::to_string(dataType);
  emitError(location) << what << " has element type " << name
                      << ", expected a float of 16 to 64 bits, an integer of 8 to 64 or bool";
  return {};
}

Type computedType(Type element) {
  if (auto real = dyn_cast<FloatType>(element); real && real.getWidth() <= 16)
    return Float32Type::get(element.getContext());
  auto integer = dyn_cast<IntegerType>(element);
  if (integer && integer.getWidth() > 1 && integer.getWidth() < 8)
    return IntegerType::get(element.getContext(), 8, integer.getSignedness());
  return element;
}

RankedTensorType possibleType(const onnx::TensorProto &tensor, MLIRContext *context, Types allowed) {
  Type element = elementType(tensor.data_type(), context, allowed);
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  return element && isSaneShape(shape) ? RankedTensorType::get(shape, element) : RankedTensorType();
}

RankedTensorType tensorType(const onnx::TensorProto &tensor, const Twine &what, Location location,
                            Types allowed) {
  RankedTensorType type = possibleType(tensor, location.getContext(), allowed);
  if (!type && elementType(tensor.data_type(), what, location, allowed))
    emitError(location) << what << " has dimensions [" << ArrayRef(tensor.dims().data(), tensor.dims_size())
                        << "], expected none negative and at most 2^48 elements";
  return type;
}

/// Appends each of `values` as a `T`.
template <typename T, typename Values> static std::string narrow(const Values &values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  size_t at = 0;
  for (auto value : values) {
    T converted = static_cast<T>(value);
    std::memcpy(bytes.data() + at, &converted, sizeof(T));
    at += sizeof(T);
  }
  return bytes;
}

/// The bytes that the typed fields stand for.
static std::string fieldBytes(const onnx::TensorProto &tensor, int64_t elementBytes) {
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return narrow<float>(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return narrow<double>(tensor.double_data());
  case onnx::TensorProto::INT64:
    return narrow<int64_t>(tensor.int64_data());
  case onnx::TensorProto::UINT64:
    return narrow<uint64_t>(tensor.uint64_data());
  case onnx::TensorProto::UINT32:
    return narrow<uint32_t>(tensor.uint64_data());
  case onnx::TensorProto::INT32:
    return narrow<int32_t>(tensor.int32_data());
  default: // all others are in int32_data, floats as their bits
    return elementBytes == 1 ? narrow<uint8_t>(tensor.int32_data()) : narrow<uint16_t>(tensor.int32_data());
  }
}

FailureOr<std::string> typedBytes(const onnx::TensorProto &tensor, RankedTensorType type, const Twine &what,
                                  Location location) {
  // Only the raw data of the model's own initializers stays in the file.
  std::string bytes = tensor.has_raw_data() ? tensor.raw_data()
                                            : fieldBytes(tensor, graph::elementBytes(type.getElementType()));
  if ((int64_t)bytes.size() != graph::numBytes(type))
    return emitError(location) << what << " has " << bytes.size() << " bytes of data, expected "
                               << graph::numBytes(type) << " for " << type;
  return bytes;
}

DenseElementsAttr constantOf(RankedTensorType type, StringRef bytes) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, values);
  }
  // Equal elements are kept once.
  size_t width = graph::elementBytes(type.getElementType());
  if (bytes.drop_front(width) == bytes.drop_back(width))
    bytes = bytes.take_front(width);
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes.data(), bytes.size()));
}

DenseElementsAttr widened(DenseElementsAttr constant) {
  Type to = computedType(constant.getElementType());
  if (auto integers = dyn_cast<DenseIntElementsAttr>(constant)) {
    bool isUnsigned = to.isUnsignedInteger();
    return integers.mapValues(to, [&](const APInt &number) {
      return isUnsigned ? number.zext(to.getIntOrFloatBitWidth()) : number.sext(to.getIntOrFloatBitWidth());
    });
  }
  return cast<DenseFPElementsAttr>(constant).mapValues(to, [](APFloat number) {
    bool lost;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    return number.bitcastToAPInt();
  });
}

/// A byte for each of `count` elements of `bits` that lie packed in bytes, the first in the lowest bits.
static std::string unpacked(StringRef packed, int64_t count, int64_t bits) {
  std::string bytes;
  int64_t perByte = 8 / bits;
  for (int64_t i = 0; i < count; ++i)
    bytes.push_back((char)(((uint8_t)packed[i / perByte] >> (i % perByte * bits)) & ((1 << bits) - 1)));
  return bytes;
}

DenseElementsAttr constantOf(const onnx::TensorProto &tensor, const Twine &what, Location location) {
  RankedTensorType type = tensorType(tensor, what, location, Types::WithSmall);
  if (!type)
    return {};
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    emitError(location) << what << " lies in external data, expected that of initializers only";
    return {};
  }
  int64_t bits = type.getElementTypeBitWidth(), count = type.getNumElements();
  if (bits == 1 || bits >= 8) {
    FailureOr<std::string> bytes = typedBytes(tensor, type, what, location);
    return failed(bytes) ? DenseElementsAttr() : constantOf(type, *bytes);
  }
  int64_t packedBytes = llvm::divideCeil(count * bits, 8);
  auto packedType = RankedTensorType::get(packedBytes, IntegerType::get(type.getContext(), 8));
  FailureOr<std::string> packed = typedBytes(tensor, packedType, what, location);
  return failed(packed) ? DenseElementsAttr() : constantOf(type, unpacked(*packed, count, bits));
}

} // namespace dsopt::onnx_import
