//===- Declarations.cpp - what a model says of its values ------------------===//

#include "Declarations.h"

#include "Tensors.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dsopt::onnx_import {

bool isScalarFloat(const onnx::ValueInfoProto &output) {
  const onnx::TypeProto_Tensor &type = output.type().tensor_type();
  return type.has_shape() && type.shape().dim_size() == 0 && isFloatType(type.elem_type());
}

LogicalResult checkDuplicates(const ModelFile &file, Location location) {
  for (auto [values, what] :
       {std::pair(&file.graph().input(), "inputs"), {&file.graph().output(), "outputs"}}) {
    llvm::StringSet<> names;
    for (const onnx::ValueInfoProto &value : *values)
      if (!names.insert(value.name()).second)
        return emitError(location) << "the model has two " << what << " named '" << value.name() << "'";
  }
  return success();
}

/// Compares what the model declares about a value with what its nodes give.
static LogicalResult checkDeclaration(const onnx::ValueInfoProto &info, StringRef what,
                                      const Bindings &bindings, Location location, int &contradictions) {
  auto found = bindings.find(info.name());
  const onnx::TypeProto_Tensor &declared = info.type().tensor_type();
  if (found == bindings.end() || !found->second.value || !info.type().has_tensor_type())
    return success();
  RankedTensorType type = Emitter::typeOf(found->second.value);
  Type element = found->second.narrow ? found->second.narrow : type.getElementType();
  if (declared.elem_type() != onnx::TensorProto::UNDEFINED) {
    Type expected =
        elementType(declared.elem_type(), what + " '" + info.name() + "'", location, Types::WithSmall);
    if (!expected)
      return failure();
    if (expected != element)
      return emitError(location) << what << " '" << info.name() << "' is declared as " << expected
                                 << ", but is computed as " << element;
  }
  if (!declared.has_shape())
    return success();
  bool fits = declared.shape().dim_size() == type.getRank();
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = !declared.shape().dim(i).has_dim_value() || declared.shape().dim(i).dim_value() < 0 ||
           declared.shape().dim(i).dim_value() == type.getDimSize(i);
  if (fits)
    return success();
  std::string shape;
  llvm::raw_string_ostream stream(shape);
  llvm::interleaveComma(declared.shape().dim(), stream, [&](const auto &dim) {
    if (dim.has_dim_value())
      stream << dim.dim_value();
    else
      stream << (dim.dim_param().empty() ? "?" : dim.dim_param());
  });
  if (++contradictions == 1)
    emitWarning(location) << what << " '" << info.name() << "' is declared with the shape [" << shape
                          << "], but is computed as " << type << ", which is what counts";
  return success();
}

LogicalResult checkDeclarations(const ModelFile &file, const Bindings &bindings, Location location) {
  int contradictions = 0; // the first is said
  for (const onnx::ValueInfoProto &output : file.graph().output())
    if (failed(checkDeclaration(output, "output", bindings, location, contradictions)))
      return failure();
  for (const onnx::ValueInfoProto &info : file.graph().value_info())
    if (failed(checkDeclaration(info, "value", bindings, location, contradictions)))
      return failure();
  return success();
}

} // namespace dsopt::onnx_import
