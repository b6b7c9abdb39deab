//===- NpzWriter.cpp - writes NumPy's .npz archives ------------------------===//

#include "Data/NpzWriter.h"
#include "Core/Addresses.h"

#include <algorithm>
#include <cstring>

#include <zlib.h>

using namespace dsopt::runtime;

/// Little-endian, as all numbers of an archive.
template <typename T> static void put(std::string &text, T value) {
  for (size_t i = 0; i < sizeof value; ++i)
    text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

constexpr uint16_t kVersion = 45;            ///< that reads sizes of 64 bits
constexpr uint16_t kUtf8 = 0x800;            ///< names are
constexpr uint16_t kDate = (1 << 5) | 1;     ///< the first day that an archive knows
constexpr uint32_t kElsewhere = 0xffffffffu; ///< a size that stands in 64 bits
constexpr uint16_t kElsewhere16 = 0xffff, kExtra = 1;

std::string NpzWriter::Array::local() const {
  std::string text;
  put<uint32_t>(text, 0x04034b50);
  for (uint16_t value : {kVersion, kUtf8, uint16_t(0), uint16_t(0), kDate})
    put(text, value);
  put<uint32_t>(text, static_cast<uint32_t>(checksum));
  put(text, kElsewhere);
  put(text, kElsewhere);
  put(text, static_cast<uint16_t>(name.size()));
  put<uint16_t>(text, 20);
  text += name;
  put(text, kExtra);
  put<uint16_t>(text, 16);
  put(text, size());
  put(text, size());
  return text;
}

std::string NpzWriter::Array::entry() const {
  std::string text;
  put<uint32_t>(text, 0x02014b50);
  for (uint16_t value : {kVersion, kVersion, kUtf8, uint16_t(0), uint16_t(0), kDate})
    put(text, value);
  put<uint32_t>(text, static_cast<uint32_t>(checksum));
  put(text, kElsewhere);
  put(text, kElsewhere);
  put(text, static_cast<uint16_t>(name.size()));
  put<uint16_t>(text, 28);
  for (int i = 0; i < 3; ++i) // no comment, the first disk, bytes
    put<uint16_t>(text, 0);
  put<uint32_t>(text, 0);
  put(text, kElsewhere);
  text += name;
  put(text, kExtra);
  put<uint16_t>(text, 24);
  put(text, size());
  put(text, size());
  put(text, offset);
  return text;
}

/// An element type as NumPy writes it.
static std::string numpyType(const std::string &type) {
  static const std::pair<const char *, const char *> known[] = {
      {"f64", "<f8"}, {"f32", "<f4"}, {"f16", "<f2"}, {"i64", "<i8"},  {"i32", "<i4"},  {"i16", "<i2"},
      {"i8", "|i1"},  {"i1", "|b1"},  {"ui8", "|u1"}, {"ui16", "<u2"}, {"ui32", "<u4"}, {"ui64", "<u8"}};
  for (auto [name, numpy] : known)
    if (type == name)
      return numpy;
  throw Error(StatusInput,
              "outputs of type " + type + " are no array of NumPy's; -outputs=GLOB chooses others");
}

static std::string arrayHeader(const std::string &type, const std::vector<int64_t> &shape) {
  std::string text = "{'descr': '" + numpyType(type) + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    text += std::to_string(size) + ", ";
  text += "), }";
  constexpr size_t kBefore = 10, kAlignment = 64;
  text.append(kAlignment - 1 - (kBefore + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  put(header, static_cast<uint16_t>(text.size()));
  return header + text;
}

NpzWriter::NpzWriter(const std::string &path) : file(path) {}

size_t NpzWriter::add(const std::string &name, const std::string &type, const std::vector<int64_t> &shape) {
  Array array;
  array.name = name + ".npy";
  array.header = arrayHeader(type, shape);
  array.bytes = elementBytes(type);
  for (int64_t size : shape)
    array.bytes *= size;
  array.checksum = crc32_z(0, reinterpret_cast<const Bytef *>(array.header.data()), array.header.size());
  array.offset = end;
  uint64_t begin = end + array.local().size();
  file.writeAt(begin, array.header.data(), array.header.size());
  end = begin + array.size();
  arrays.push_back(std::move(array));
  return arrays.size() - 1;
}

void NpzWriter::take(size_t number, const char *values, int64_t bytes) {
  Array &array = arrays[number];
  uint64_t taken = std::min<uint64_t>(bytes, array.bytes - array.taken);
  file.writeAt(array.offset + array.local().size() + array.header.size() + array.taken, values, taken);
  array.checksum = crc32_z(array.checksum, reinterpret_cast<const Bytef *>(values), taken);
  array.taken += taken;
}

void NpzWriter::finish() {
  std::string directory;
  for (const Array &array : arrays) {
    std::string local = array.local();
    file.writeAt(array.offset, local.data(), local.size());
    directory += array.entry();
  }
  uint64_t size = directory.size();
  put<uint32_t>(directory, 0x06064b50);
  put<uint64_t>(directory, 44);
  put(directory, kVersion);
  put(directory, kVersion);
  put<uint64_t>(directory, 0);
  put<uint64_t>(directory, arrays.size());
  put<uint64_t>(directory, arrays.size());
  put(directory, size);
  put(directory, end);
  put<uint32_t>(directory, 0x07064b50);
  put<uint32_t>(directory, 0);
  put(directory, end + size);
  put<uint32_t>(directory, 1);
  put<uint32_t>(directory, 0x06054b50);
  put<uint32_t>(directory, 0);
  put(directory, kElsewhere16);
  put(directory, kElsewhere16);
  put(directory, kElsewhere);
  put(directory, kElsewhere);
  put<uint16_t>(directory, 0);
  file.writeAt(end, directory.data(), directory.size());
  file.commit();
}
