//===- TensorValues.cpp - the elements of an initializer -------------------===//

#include "TensorValues.h"

#include "Tensors.h"

#include "llvm/ADT/APFloat.h"

using namespace mlir;

namespace dsopt::onnx_import {

TensorValues::TensorValues(ModelFile &file, const onnx::TensorProto &tensor, RankedTensorType shape,
                           Location location)
    : type(shape.getElementType()), width(shape.getElementTypeBitWidth() / 8) {
  // What is wrong with the data is said where it is read for good.
  ScopedDiagnosticHandler quiet(location.getContext(), [](Diagnostic &) { return success(); });
  const Extent &extent = file.extent(file.findInitializer(tensor.name()));
  bool absent = false;
  if (extent.file.empty()) {
    if (auto data = typedBytes(tensor, shape, "initializer '" + tensor.name() + "'", location);
        succeeded(data))
      bytes = typed = std::move(*data);
  } else if (const llvm::MemoryBuffer *data =
                 file.weights(extent, shape.getNumElements() * width, tensor.name(), location, &absent)) {
    bytes = data->getBuffer().substr(extent.offset, shape.getNumElements() * width);
  }
}

double TensorValues::operator[](int64_t index) const {
  if (width == 4) {
    float value;
    std::memcpy(&value, bytes.data() + index * width, width);
    return value;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * width, width);
  APFloat number(cast<FloatType>(type).getFloatSemantics(), APInt(8 * width, bits));
  bool lost;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

} // namespace dsopt::onnx_import
