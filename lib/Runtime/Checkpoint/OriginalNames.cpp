//===- OriginalNames.cpp - what parameters are called where they come from ===//
//
// dsopt.export writes into the model's metadata_props what each initializer is in
// PyTorch: "dsopt.parameters" is a JSON list of {"onnx": name, "torch": name} with
// "transposed": true where a matrix lies the other way round.
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

using namespace dsopt::runtime;
using Json = nlohmann::json;

namespace {
/// The fields of a protobuf message, one after the other.
class Fields {
public:
  explicit Fields(std::string_view bytes) : rest(bytes) {}

  /// Moves to the next field; false at the end, or where the bytes are no message.
  bool next() {
    uint64_t key = 0, length = 0;
    if (rest.empty() || !varint(key))
      return false;
    field = static_cast<int>(key >> 3);
    content = {};
    switch (key & 7) {
    case 0:
      return varint(length);
    case 1:
      return skip(8);
    case 2:
      if (!varint(length) || length > rest.size())
        return false;
      content = rest.substr(0, length);
      return skip(length);
    case 5:
      return skip(4);
    default:
      return false;
    }
  }
  int field = 0;
  std::string_view content; ///< of a length-delimited field

private:
  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; !rest.empty() && shift < 64; shift += 7) {
      uint64_t byte = static_cast<unsigned char>(rest[0]);
      rest.remove_prefix(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80)
        return true;
    }
    return false;
  }
  bool skip(uint64_t bytes) {
    if (bytes > rest.size())
      return false;
    rest.remove_prefix(bytes);
    return true;
  }
  std::string_view rest;
};

constexpr int kMetadata = 14; // ModelProto.metadata_props
} // namespace

OriginalNames dsopt::runtime::originalNames(const char *model, uint64_t modelBytes) {
  OriginalNames names;
  for (Fields fields(std::string_view(model, model ? modelBytes : 0)); fields.next();) {
    if (fields.field != kMetadata)
      continue;
    std::string_view key, value;
    for (Fields entry(fields.content); entry.next();)
      (entry.field == 1 ? key : value) = entry.content;
    if (key != "dsopt.parameters")
      continue;
    Json list = Json::parse(value, nullptr, /*allow_exceptions=*/false);
    if (!list.is_array())
      continue;
    for (const Json &row : list)
      if (row.is_object() && row.contains("onnx") && row["onnx"].is_string() && row.contains("torch") &&
          row["torch"].is_string())
        names[row["onnx"].get<std::string>()] = {row["torch"].get<std::string>(),
                                                 row.contains("transposed") && row["transposed"] == true};
  }
  return names;
}

Parameter dsopt::runtime::originalForm(const Parameter &parameter, const OriginalNames &names) {
  Parameter form = parameter;
  auto found = names.find(parameter.name);
  if (found == names.end())
    return form;
  form.name = found->second.name;
  if (found->second.transposed && form.shape.size() == 2)
    std::swap(form.shape[0], form.shape[1]);
  return form;
}

std::string dsopt::runtime::transposedValue(const Parameter &parameter, const char *value) {
  int64_t rows = parameter.shape[0], columns = parameter.shape[1];
  int64_t width = wholeBytes(parameter) / std::max<int64_t>(rows * columns, 1);
  std::string turned(wholeBytes(parameter), '\0');
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(&turned[(column * rows + row) * width], value + (row * columns + column) * width, width);
  return turned;
}
