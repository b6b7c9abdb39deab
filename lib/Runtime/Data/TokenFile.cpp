//===- TokenFile.cpp - files of tokens ------------------------------------===//

#include "TokenFile.h"
#include "Npy.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace dsopt::runtime;

/// llm.c: 256 integers of 32 bits, of which the first three are magic, version and number of tokens.
static constexpr int32_t kLlmC16 = 20240520, kLlmC32 = 20240801;
static constexpr int64_t kLlmCHeader = 1024;

void TokenFile::fail(const std::string &what) const { throw Error(StatusInput, file + ": " + what); }

void TokenFile::failSize(const std::string &source) const {
  fail(source + " says " + std::to_string(count) + " tokens of " + std::to_string(width) +
       " bytes, but the file has " + std::to_string(size) + " bytes");
}

template <typename T> static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

TokenFile::TokenFile(const std::string &path, int64_t rawBytes)
    : file(path), mapped(path, "a file of tokens"), data(reinterpret_cast<const char *>(mapped.data())),
      size(static_cast<int64_t>(mapped.size())) {
  if (!size)
    fail("holds no tokens");
  int32_t magic = size >= 12 ? load<int32_t>(data) : 0;
  if (magic == kLlmC16 || magic == kLlmC32)
    readLlmC();
  else if (!readMegatron() && !readNpy())
    readRaw(rawBytes);
}

void TokenFile::readLlmC() {
  width = load<int32_t>(data) == kLlmC16 ? 2 : 4;
  count = load<int32_t>(data + 8);
  start = kLlmCHeader;
  if (count < 0 || size != start + count * width)
    failSize("its header");
}

bool TokenFile::readMegatron() {
  if (file.size() < 4 || file.compare(file.size() - 4, 4, ".bin") != 0)
    return false;
  std::string path = file.substr(0, file.size() - 4) + ".idx";
  struct stat info;
  if (sys::stat(path.c_str(), &info) != 0 && errno == ENOENT)
    return false;
  MappedFile index(path, "the index of " + file);
  constexpr uint64_t kHead = 34;
  auto *head = reinterpret_cast<const char *>(index.data());
  if (index.size() < kHead || std::memcmp(head, "MMIDIDX\0\0", 9) != 0)
    return false;
  int code = head[17];
  // Megatron's codes: unsigned and signed 8 bits, 16, 32, 64, two of floats, unsigned 16.
  static constexpr int widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
  width = code > 0 && code < 9 ? widths[code] : 0;
  isSigned = code > 1 && code < 6;
  if (!width)
    fail("its index " + path + " has element type " + std::to_string(code) + ", expected integers");
  uint64_t sequences = load<uint64_t>(head + 18);
  if (sequences > (index.size() - kHead) / sizeof(int32_t))
    fail("its index " + path + " is shorter than its " + std::to_string(sequences) + " sequences");
  for (uint64_t i = 0; i < sequences; ++i) {
    int32_t length = load<int32_t>(head + kHead + i * sizeof length);
    if (length < 0)
      fail("its index " + path + " has a sequence of " + std::to_string(length) + " tokens");
    count += length;
  }
  if (size % width || size / width != count)
    failSize("its index " + path);
  return true;
}

bool TokenFile::readNpy() {
  if (size < static_cast<int64_t>(kNpyPrefix) || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return false;
  auto *head = reinterpret_cast<const uint8_t *>(data);
  uint64_t bytes = npyHeaderBytes(head);
  if (!bytes || bytes > static_cast<uint64_t>(size))
    fail("is no .npy file that can be read: its header is of another version than 1, 2 and 3, or cut");
  NpzArray array;
  array.memberBytes = size;
  if (std::string wrong = readNpyHeader(head, array); !wrong.empty())
    fail("is a .npy file that" + wrong);
  bool integer = array.type[0] == 'i' || array.type[0] == 'u';
  if (array.shape.size() != 1 || !integer || array.type == "i1")
    fail("is a .npy file of " + describeArray(array) +
         ", expected one axis of integers, the tokens one after the other; arrays with rows go into an .npz "
         "file, under the names of the inputs");
  width = array.elementBytes;
  isSigned = array.type[0] == 'i';
  start = array.headerBytes;
  count = array.shape[0];
  if ((size - start) % width || (size - start) / width != count)
    failSize("its header");
  return true;
}

void TokenFile::readRaw(int64_t bytes) {
  width = bytes ? bytes : 2;
  if (std::string other = bytes ? "" : seemsToBe(); !other.empty())
    fail(other);
  if (size % width)
    fail("has " + std::to_string(size) + " bytes, expected a multiple of " + std::to_string(width) +
         " (-token-bytes says how many a token has)");
  count = size / width;
}

//===----------------------------------------------------------------------===//
// What only looks like tokens
//===----------------------------------------------------------------------===//

namespace {
struct Magic {
  const char *bytes;
  int64_t length;
  const char *what, *remedy;
};
} // namespace

static constexpr const char *kUnpack = "unpack it first";
static constexpr const char *kConvert = "save its token ids as raw .bin, .npy or .npz";
static const Magic magics[] = {
    {"\x1f\x8b\x08", 3, "compressed by gzip", kUnpack},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd", kUnpack},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz", kUnpack},
    {"BZh", 3, "compressed by bzip2", kUnpack},
    {"\x04\x22\x4d\x18", 4, "compressed by lz4", kUnpack},
    {"\xff\xfe", 2, "text in UTF-16", kConvert},
    {"PK\x03\x04", 4, "a zip archive", "an .npz file has to be named so; others are to be unpacked first"},
    {"PAR1", 4, "a Parquet file", kConvert},
    {"ARROW1", 6, "an Arrow file", kConvert},
    {"\x89HDF", 4, "an HDF5 file", kConvert},
    {"SQLite format 3", 15, "an SQLite database", kConvert},
    {"\x80\x04\x95", 3, "a Python pickle", kConvert},
    {"\x80\x02\x8a", 3, "a Python pickle", kConvert},
    {"\x7f"
     "ELF",
     4, "a program", kConvert},
};

/// Whether text in UTF-8 begins the file.
static bool isText(const char *data, int64_t size) {
  constexpr int64_t kEnough = 16, kMost = 4096;
  if (size < kEnough)
    return false;
  auto byteAt = [&](int64_t at) { return static_cast<unsigned char>(data[at]); };
  for (int64_t at = 0, more = 0; at < std::min(size, kMost); ++at) {
    unsigned char byte = byteAt(at);
    bool follows = (byte & 0xc0) == 0x80;
    bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    if (control || byte > 0xf4 || follows != (more > 0))
      return false;
    more = follows ? more - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
  }
  return true;
}

std::string TokenFile::seemsToBe() const {
  std::string asIs = "; -token-bytes=2 reads it as it is";
  for (const Magic &magic : magics)
    if (size >= magic.length && std::memcmp(data, magic.bytes, magic.length) == 0)
      return std::string("seems to be ") + magic.what + ": " + magic.remedy + asIs;
  if (isText(data, size)) {
    bool json = *std::find_if(data, data + size, [](char c) { return c != ' ' && c != '\n'; }) == '{';
    return std::string("seems to be ") + (json ? "JSON" : "text") +
           ", not tokens: turn it into token ids first, and " + kConvert + asIs;
  }
  // Wider integers read as 2 bytes have zeros where their upper halves are.
  for (int64_t wide : {8, 4}) {
    int64_t parts = wide / 2, seen = 0, lower = 0;
    if (size % wide)
      continue;
    auto at = [&](int64_t index) { return load<uint16_t>(data + index * 2); };
    bool zeros = true;
    for (int64_t index : sample()) {
      bool upper = index % parts != 0;
      seen += upper;
      zeros &= !upper || at(index) == 0;
      lower += !upper && at(index) != 0;
    }
    constexpr int64_t kEnough = 8;
    if (zeros && seen >= kEnough && lower > 0)
      return "seems to hold integers of " + std::to_string(wide) +
             " bytes (read as tokens of 2, all but every " + (wide == 4 ? "second" : "fourth") +
             " are 0): " + (wide == 4 ? "-token-bytes=4 reads them" : "save them as uint16 or uint32") + asIs;
  }
  return "";
}

std::vector<int64_t> TokenFile::sample() const {
  constexpr int64_t kEnds = 2048, kRuns = 64, kRun = 32;
  int64_t all = count ? count : size / width;
  std::vector<int64_t> places;
  auto take = [&](int64_t from, int64_t to) {
    from = std::max(from, places.empty() ? 0 : places.back() + 1);
    for (int64_t at = from; at < std::min(to, all); ++at)
      places.push_back(at);
  };
  take(0, kEnds);
  for (int64_t run = 1; run < kRuns; ++run)
    take(all / kRuns * run, all / kRuns * run + kRun);
  take(all - kEnds, all);
  return places;
}

int64_t TokenFile::at(int64_t index) const {
  const char *from = data + offset(index);
  switch (width) {
  case 1:
    return isSigned ? load<int8_t>(from) : load<uint8_t>(from);
  case 2:
    return isSigned ? load<int16_t>(from) : load<uint16_t>(from);
  case 4:
    return isSigned ? load<int32_t>(from) : load<uint32_t>(from);
  default:
    return load<int64_t>(from);
  }
}
