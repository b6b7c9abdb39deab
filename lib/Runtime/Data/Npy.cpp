//===- Npy.cpp - NumPy's header before an array ---------------------------===//

#include "Npy.h"

#include <cstdlib>
#include <cstring>

using namespace dsopt::runtime;

template <typename T> static T load(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// NumPy's type descriptor to ours: "<f4" is f32.
static void readType(NpzArray &array) {
  const std::string &text = array.dtype;
  if (text.size() < 3 || (text[0] != '<' && text[0] != '|'))
    return;
  std::string width = text.substr(2);
  if (width.size() != 1 || width.find_first_not_of("1248") != std::string::npos)
    return;
  int64_t bytes = width[0] - '0';
  std::string bits = std::to_string(bytes * 8);
  switch (text[1]) {
  case 'f':
    if (bytes == 1)
      return;
    array.type = "f" + bits;
    break;
  case 'i':
    array.type = "i" + bits;
    break;
  case 'u':
    array.type = "ui" + bits;
    break;
  case 'b':
    array.type = "i1";
    break;
  default:
    return;
  }
  array.elementBytes = bytes;
}

/// The text after 'key': in the header's dictionary.
static std::string headerValue(const std::string &header, const std::string &key) {
  for (char quote : {'\'', '"'}) {
    size_t at = header.find(quote + key + quote);
    if (at == std::string::npos)
      continue;
    at = header.find(':', at);
    if (at == std::string::npos)
      continue;
    at = header.find_first_not_of(' ', at + 1);
    return at == std::string::npos ? "" : header.substr(at);
  }
  return "";
}

uint64_t dsopt::runtime::npyHeaderBytes(const uint8_t *start) {
  if (std::memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
    return 0;
  return start[6] == 1 ? 10 + load<uint16_t>(start + 8) : 12 + uint64_t(load<uint32_t>(start + 8));
}

std::string dsopt::runtime::readNpyHeader(const uint8_t *start, NpzArray &array) {
  array.headerBytes = static_cast<int64_t>(npyHeaderBytes(start));
  int64_t prefix = start[6] == 1 ? 10 : 12;
  std::string header(reinterpret_cast<const char *>(start) + prefix, array.headerBytes - prefix);
  std::string descr = headerValue(header, "descr"), order = headerValue(header, "fortran_order");
  std::string shape = headerValue(header, "shape");
  if (descr.empty() || order.empty() || shape.empty() || shape[0] != '(')
    return " has a .npy header without descr, fortran_order or shape";
  if (descr[0] == '\'' || descr[0] == '"')
    array.dtype = descr.substr(1, descr.find(descr[0], 1) - 1);
  else
    array.dtype = "a record";
  readType(array);
  int64_t count = 1;
  for (const char *p = shape.c_str() + 1; *p && *p != ')';) {
    char *end = nullptr;
    int64_t size = std::strtoll(p, &end, 10);
    if (end == p) {
      if (*p != ',' && *p != ' ')
        return " has a shape that cannot be read: " + shape.substr(0, shape.find(')') + 1);
      ++p;
      continue;
    }
    array.shape.push_back(size);
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return " has an impossible shape";
    p = end;
  }
  array.fortran = order.compare(0, 4, "True") == 0 && array.shape.size() > 1;
  if (array.elementBytes == 0)
    return "";
  if (__builtin_mul_overflow(count, array.elementBytes, &array.bytes) ||
      static_cast<uint64_t>(array.bytes) > array.memberBytes - array.headerBytes)
    return " is shorter than its shape " + describeArray(array) + " says";
  return "";
}
