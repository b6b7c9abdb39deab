//===- Safetensors.cpp - whole tensors in one safetensors file ------------===//
//
// 8 bytes: length of the header; the header: JSON, padded with spaces to 8
// bytes; the tensors one after the other, in the program's order.
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/Manifest.h"

#include <map>

using namespace dsopt::runtime;

std::string dsopt::runtime::layOutSafetensors(std::vector<Parameter *> tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  int64_t offset = 0;
  for (Parameter *tensor : tensors) {
    int64_t next = offset + wholeBytes(*tensor);
    header += "," + jsonString(tensor->name) + ":{\"dtype\":\"" + elementType(tensor->type).safetensors +
              "\",\"shape\":[";
    for (size_t i = 0; i < tensor->shape.size(); ++i)
      header += (i ? "," : "") + std::to_string(tensor->shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(next) + "]}";
    tensor->offset = offset;
    offset = next;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  uint64_t length = header.size();
  std::string text(reinterpret_cast<const char *>(&length), sizeof length);
  text += header;
  for (Parameter *tensor : tensors) {
    tensor->offset += text.size();
    tensor->file_bytes = offset + text.size();
  }
  return text;
}

namespace {
class SafetensorsWriter : public ParameterSink {
public:
  SafetensorsWriter(const std::string &path, const std::vector<Parameter> &parameters,
                    const OriginalNames &names)
      : file(path), names(names) {
    std::vector<Parameter> placed;
    for (const Parameter &parameter : parameters)
      placed.push_back(originalForm(parameter, names));
    std::vector<Parameter *> pointers;
    for (Parameter &parameter : placed)
      pointers.push_back(&parameter);
    std::string header = layOutSafetensors(pointers);
    file.append(header.data(), header.size());
    for (size_t i = 0; i < placed.size(); ++i)
      offsets[parameters[i].name] = placed[i].offset;
  }
  void parameter(const Parameter &parameter, const char *value) override {
    auto found = names.find(parameter.name);
    std::string turned;
    if (found != names.end() && found->second.transposed && parameter.shape.size() == 2) {
      turned = transposedValue(parameter, value);
      value = turned.data();
    }
    file.writeAt(offsets.at(parameter.name), value, wholeBytes(parameter));
  }
  void finish() override { file.commit(); }

private:
  AtomicFile file;
  const OriginalNames names;
  std::map<std::string, uint64_t> offsets;
};
} // namespace

std::unique_ptr<ParameterSink> dsopt::runtime::makeSafetensorsWriter(const std::string &path,
                                                                     const std::vector<Parameter> &parameters,
                                                                     const OriginalNames &names) {
  return std::make_unique<SafetensorsWriter>(path, parameters, names);
}
