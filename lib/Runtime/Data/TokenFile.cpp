//===- TokenFile.cpp - files of tokens ------------------------------------===//

#include "TokenFile.h"
#include "dsopt/Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dsopt::runtime;

/// llm.c: 256 integers of 32 bits, of which the first three are magic, version and number of tokens.
static constexpr int32_t kLlmC16 = 20240520, kLlmC32 = 20240801;
static constexpr int64_t kLlmCHeader = 1024;

void TokenFile::fail(const std::string &what) const { throw Error(StatusInput, file + ": " + what); }

template <typename T> static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

TokenFile::TokenFile(const std::string &path, int64_t rawBytes) : file(path), width(rawBytes) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (descriptor < 0 || fstat(descriptor, &info) != 0 || S_ISDIR(info.st_mode)) {
    std::string why = descriptor < 0 ? std::strerror(errno) : "it is a folder";
    if (descriptor >= 0)
      close(descriptor);
    fail("cannot be read: " + why);
  }
  size = info.st_size;
  void *mapped = size ? mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0) : nullptr;
  int error = errno;
  close(descriptor);
  if (!size)
    fail("holds no tokens");
  if (mapped == MAP_FAILED)
    fail(std::string("cannot be mapped: ") + std::strerror(error));
  data = static_cast<const char *>(mapped);
  int32_t magic = size >= 12 ? load<int32_t>(data) : 0;
  if (magic == kLlmC16 || magic == kLlmC32) {
    readLlmC();
  } else if (!readMegatron()) {
    if (size % width)
      fail("has " + std::to_string(size) + " bytes, expected a multiple of " + std::to_string(width) +
           " (-token-bytes says how many a token has)");
    count = size / width;
  }
}

TokenFile::~TokenFile() {
  if (data)
    munmap(const_cast<char *>(data), size);
}

void TokenFile::readLlmC() {
  width = load<int32_t>(data) == kLlmC16 ? 2 : 4;
  count = load<int32_t>(data + 8);
  start = kLlmCHeader;
  if (count < 0 || size < start + count * width)
    fail("its header says " + std::to_string(count) + " tokens of " + std::to_string(width) +
         " bytes, but the file has " + std::to_string(size) + " bytes");
}

bool TokenFile::readMegatron() {
  if (file.size() < 4 || file.compare(file.size() - 4, 4, ".bin") != 0)
    return false;
  std::string path = file.substr(0, file.size() - 4) + ".idx";
  std::ifstream index(path, std::ios::binary);
  char head[34] = {};
  if (!index.read(head, sizeof head) || std::memcmp(head, "MMIDIDX\0\0", 9) != 0)
    return false;
  int code = head[17];
  // Megatron's codes: unsigned and signed 8 bits, 16, 32, 64, two of floats, unsigned 16.
  static constexpr int widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
  width = code > 0 && code < 9 ? widths[code] : 0;
  if (!width)
    fail("its index " + path + " has element type " + std::to_string(code) + ", expected integers");
  int64_t sequences = load<int64_t>(head + 18);
  for (int64_t i = 0; i < sequences; ++i) {
    char length[4];
    if (!index.read(length, sizeof length))
      fail("its index " + path + " is shorter than its " + std::to_string(sequences) + " sequences");
    count += load<int32_t>(length);
  }
  if (size < count * width)
    fail("its index " + path + " says " + std::to_string(count) + " tokens of " + std::to_string(width) +
         " bytes, but the file has " + std::to_string(size) + " bytes");
  return true;
}

int64_t TokenFile::at(int64_t index) const {
  const char *from = data + offset(index);
  switch (width) {
  case 1:
    return load<uint8_t>(from);
  case 2:
    return load<uint16_t>(from);
  case 4:
    return load<uint32_t>(from);
  default:
    return load<int64_t>(from);
  }
}
