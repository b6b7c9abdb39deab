//===- Safetensors.cpp - whole tensors in one safetensors file ------------===//
//
// 8 bytes: length of the header; the header: JSON, padded with spaces to 8
// bytes; the tensors one after the other, in the program's order.
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/JsonText.h"

#include <map>

using namespace dsopt::runtime;

namespace {
class SafetensorsWriter : public ParameterSink {
public:
  SafetensorsWriter(const std::string &path, const std::vector<Parameter> &parameters) : file(path) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
    uint64_t offset = 0;
    for (const Parameter &parameter : parameters) {
      uint64_t next = offset + wholeBytes(parameter);
      header += "," + jsonString(parameter.name) + ":{\"dtype\":\"" +
                elementType(parameter.type).safetensors + "\",\"shape\":[";
      for (size_t i = 0; i < parameter.shape.size(); ++i)
        header += (i ? "," : "") + std::to_string(parameter.shape[i]);
      header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(next) + "]}";
      offsets[parameter.name] = offset;
      offset = next;
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    uint64_t length = header.size();
    file.append(&length, sizeof length);
    file.append(header.data(), header.size());
  }
  void parameter(const Parameter &parameter, const char *value) override {
    file.writeAt(file.position() + offsets.at(parameter.name), value, wholeBytes(parameter));
  }
  void finish() override { file.commit(); }

private:
  AtomicFile file;
  std::map<std::string, uint64_t> offsets;
};
} // namespace

std::unique_ptr<ParameterSink>
dsopt::runtime::makeSafetensorsWriter(const std::string &path, const std::vector<Parameter> &parameters) {
  return std::make_unique<SafetensorsWriter>(path, parameters);
}
