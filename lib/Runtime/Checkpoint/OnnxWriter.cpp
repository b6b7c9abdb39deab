//===- OnnxWriter.cpp - the model with its trained parameters -------------===//
//
// The program carries the model's protobuf without its parameters. In the wire
// format two messages written one after the other are one message with the
// repeated fields of both, so each parameter is appended as
//   ModelProto{graph(7){initializer(5) TensorProto{dims(1), data_type(2), name(8),
//     raw_data(9) or external_data(13), data_location(14)}}}
// and no protobuf library is needed. A file of 2 GB or more is no protobuf: large
// models keep their values in FILE.data.
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"

using namespace dsopt::runtime;

namespace {
constexpr uint64_t kAlignment = 64;

void putVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

/// The key of a length-delimited field and its length.
void putLength(std::string &out, int field, uint64_t length) {
  putVarint(out, field << 3 | 2);
  putVarint(out, length);
}

void putText(std::string &out, int field, const std::string &text) {
  putLength(out, field, text.size());
  out += text;
}

void putInteger(std::string &out, int field, uint64_t value) {
  putVarint(out, field << 3);
  putVarint(out, value);
}

void putEntry(std::string &out, const std::string &key, const std::string &value) {
  std::string entry;
  putText(entry, 1, key);
  putText(entry, 2, value);
  putText(out, 13, entry);
}

class OnnxWriter : public ParameterSink {
public:
  OnnxWriter(const std::string &path, const char *model, uint64_t modelBytes, bool external)
      : file(path), location(path.substr(path.rfind('/') + 1) + ".data") {
    if (external)
      data = std::make_unique<AtomicFile>(path + ".data");
    file.append(model, modelBytes);
  }

  void parameter(const Parameter &parameter, const char *value) override {
    uint64_t bytes = wholeBytes(parameter);
    std::string tensor; // but for its raw data
    for (int64_t size : parameter.shape)
      putInteger(tensor, 1, size);
    putInteger(tensor, 2, elementType(parameter.type).onnx);
    putText(tensor, 8, parameter.name);
    if (data) {
      static const char zeros[kAlignment] = {};
      data->append(zeros, (kAlignment - data->position() % kAlignment) % kAlignment);
      putEntry(tensor, "location", location);
      putEntry(tensor, "offset", std::to_string(data->position()));
      putEntry(tensor, "length", std::to_string(bytes));
      putInteger(tensor, 14, 1);
      data->append(value, bytes);
    } else {
      putLength(tensor, 9, bytes);
    }
    uint64_t tensorBytes = tensor.size() + (data ? 0 : bytes);
    std::string initializer, model;
    putLength(initializer, 5, tensorBytes);
    putLength(model, 7, initializer.size() + tensorBytes);
    model += initializer + tensor;
    file.append(model.data(), model.size());
    if (!data)
      file.append(value, bytes);
  }

  void finish() override {
    if (data)
      data->commit();
    file.commit();
  }

private:
  AtomicFile file;
  std::unique_ptr<AtomicFile> data;
  std::string location;
};
} // namespace

std::unique_ptr<ParameterSink> dsopt::runtime::makeOnnxWriter(const std::string &path, const char *model,
                                                              uint64_t modelBytes,
                                                              const std::vector<Parameter> &parameters,
                                                              uint64_t inlineLimit) {
  uint64_t bytes = modelBytes;
  for (const Parameter &parameter : parameters)
    bytes += wholeBytes(parameter);
  return std::make_unique<OnnxWriter>(path, model, modelBytes, bytes > inlineLimit);
}
