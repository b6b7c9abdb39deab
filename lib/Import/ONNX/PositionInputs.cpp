//===- PositionInputs.cpp - inputs that follow from positions --------------===//

#include "PositionInputs.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
enum class Numbers { None, Ones, Zeros, Counts };
} // namespace

static Numbers numbersOf(StringRef input) {
  return llvm::StringSwitch<Numbers>(input)
      .Case("attention_mask", Numbers::Ones)
      .Case("token_type_ids", Numbers::Zeros)
      .Cases({"position_ids", "cache_position"}, Numbers::Counts)
      .Default(Numbers::None);
}

/// A number as bytes of an element type of ONNX; empty for others.
static std::string bytesOf(int64_t number, int type) {
  auto as = [](auto value) { return std::string(reinterpret_cast<const char *>(&value), sizeof value); };
  switch (type) {
  case onnx::TensorProto::INT64:
    return as(number);
  case onnx::TensorProto::INT32:
    return as(int32_t(number));
  case onnx::TensorProto::FLOAT:
    return as(float(number));
  case onnx::TensorProto::BOOL:
    return as(number != 0);
  default:
    return "";
  }
}

void bindPositionInputs(ModelFile &file, const ImportOptions &options) {
  if (options.positions == 0)
    return;
  for (const onnx::ValueInfoProto &input : file.graph().input()) {
    Numbers numbers = numbersOf(input.name());
    const onnx::TypeProto_Tensor &tensor = input.type().tensor_type();
    bool isGiven = llvm::any_of(options.inputs, [&](auto &given) { return given.first == input.name(); });
    int rank = tensor.shape().dim_size();
    if (numbers == Numbers::None || isGiven || rank < 1 || rank > 2 ||
        file.findInitializer(input.name()) >= 0)
      continue;
    onnx::TensorProto value;
    value.set_name(input.name());
    value.set_data_type(tensor.elem_type());
    int64_t elements = 1, positions = 1;
    for (auto [axis, dimension] : llvm::enumerate(tensor.shape().dim())) {
      auto given = options.dims.find(dimension.dim_param());
      bool isLast = int(axis) == rank - 1;
      int64_t size = dimension.has_dim_value()     ? dimension.dim_value()
                     : given != options.dims.end() ? given->second
                     : isLast                      ? options.positions
                                                   : 1;
      value.add_dims(size);
      elements *= size;
      positions = size;
    }
    std::string bytes;
    for (int64_t i = 0; i < elements; ++i)
      bytes +=
          bytesOf(numbers == Numbers::Counts ? i % positions : numbers == Numbers::Ones, tensor.elem_type());
    value.set_raw_data(bytes);
    if (!bytes.empty())
      file.bindInput(value);
  }
}

} // namespace dsopt::onnx_import
