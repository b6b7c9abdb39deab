//===- ProtoReader.h - messages of protobuf, field by field -----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_PROTOREADER_H
#define DSOPT_LIB_RUNTIME_TEXT_PROTOREADER_H

#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace dsopt::runtime::text {

/// Goes through a message. What is cut or is no protobuf is an Error of status 1 that begins with `where`.
class ProtoReader {
public:
  ProtoReader(std::string_view bytes, const std::string &where) : bytes(bytes), where(where) {}

  int field = 0;
  uint64_t number = 0;     ///< of a number's field
  std::string_view inside; ///< of a text's or message's field

  /// The next field; false at the end.
  bool next() {
    if (at == bytes.size())
      return false;
    uint64_t tag = varint();
    field = static_cast<int>(tag >> 3 & 0x1FFFFFFF);
    inside = {};
    switch (tag & 7) {
    case 0:
      number = varint();
      return true;
    case 1:
      number = fixed(8);
      return true;
    case 5:
      number = fixed(4);
      return true;
    case 2: {
      uint64_t size = varint();
      if (size > bytes.size() - at)
        fail("a field of " + std::to_string(size) + " bytes is cut after " +
             std::to_string(bytes.size() - at));
      inside = bytes.substr(at, size);
      at += size;
      return true;
    }
    }
    fail("byte " + std::to_string(at) + " begins no field");
  }

  float real() const {
    float value;
    auto low = static_cast<uint32_t>(number);
    std::memcpy(&value, &low, sizeof value);
    return value;
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw Error(StatusInput, where + ": " + what); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == bytes.size())
        fail("it is cut inside a number");
      auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
    fail("byte " + std::to_string(at) + " ends no number");
  }
  uint64_t fixed(size_t size) {
    if (size > bytes.size() - at)
      fail("it is cut inside a number");
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    at += size;
    return value;
  }

  std::string_view bytes;
  size_t at = 0;
  const std::string &where;
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_PROTOREADER_H
