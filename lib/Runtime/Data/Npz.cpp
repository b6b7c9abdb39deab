//===- Npz.cpp - zip directory, npy headers, stored and deflated members --===//

#include "dsopt/Runtime/Npz.h"
#include "MappedFile.h"
#include "Npy.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <sys/mman.h>
#include <zlib.h>

using namespace dsopt::runtime;

/// Deflate makes no byte into more than 1032.
static constexpr uint64_t kMostInflated = 1032;

template <typename T> static T load(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::string dsopt::runtime::describeShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string dsopt::runtime::describeArray(const NpzArray &array) {
  return (array.type.empty() ? array.dtype : array.type) + " " + describeShape(array.shape);
}

void NpzFile::damaged(const std::string &what) const {
  throw Error(StatusInput, filePath + ": not a readable .npz file: " + what);
}

const uint8_t *NpzFile::at(uint64_t offset, uint64_t bytes, const char *what) const {
  if (offset > fileBytes || bytes > fileBytes - offset)
    damaged(std::string("it ends inside ") + what + " (truncated?)");
  return file + offset;
}

NpzFile::NpzFile(const std::string &path)
    : filePath(path), mapped(std::make_unique<MappedFile>(path, "a .npz file")), file(mapped->data()),
      fileBytes(mapped->size()) {
  if (fileBytes < 4 || std::memcmp(file, "PK", 2) != 0)
    throw Error(StatusInput, path + ": expected a .npz file (a zip archive)");
  readDirectory();
}

NpzFile::~NpzFile() {
  for (auto &[array, member] : opened)
    if (member.inflated)
      sys::munmap(const_cast<uint8_t *>(member.bytes), member.inflated);
}

void NpzFile::readDirectory() {
  // The end record lies in the last 64 KiB, before a comment.
  uint64_t end = 0;
  bool found = false;
  for (uint64_t back = 22; back <= fileBytes && back < 22 + 65536 && !found; ++back)
    if (load<uint32_t>(file + fileBytes - back) == 0x06054b50) {
      end = fileBytes - back;
      found = true;
    }
  if (!found)
    damaged("no directory at its end (truncated?)");
  uint64_t count = load<uint16_t>(file + end + 10), at0 = load<uint32_t>(file + end + 16);
  if ((count == 0xffff || at0 == 0xffffffff) && end >= 20 && load<uint32_t>(file + end - 20) == 0x07064b50) {
    const uint8_t *record = at(load<uint64_t>(file + end - 20 + 8), 56, "its zip64 directory");
    if (load<uint32_t>(record) != 0x06064b50)
      damaged("no zip64 directory where one is announced");
    count = load<uint64_t>(record + 32);
    at0 = load<uint64_t>(record + 48);
  }
  for (uint64_t i = 0, offset = at0; i < count; ++i) {
    const uint8_t *entry = at(offset, 46, "its directory");
    if (load<uint32_t>(entry) != 0x02014b50)
      damaged("entry " + std::to_string(i) + " of its directory is not one");
    uint16_t flags = load<uint16_t>(entry + 8), method = load<uint16_t>(entry + 10);
    uint16_t nameBytes = load<uint16_t>(entry + 28), extraBytes = load<uint16_t>(entry + 30);
    uint16_t commentBytes = load<uint16_t>(entry + 32);
    at(offset, 46ull + nameBytes + extraBytes + commentBytes, "its directory");
    NpzArray array;
    array.crc = load<uint32_t>(entry + 16);
    array.storedBytes = load<uint32_t>(entry + 20);
    array.memberBytes = load<uint32_t>(entry + 24);
    uint64_t local = load<uint32_t>(entry + 42);
    array.name.assign(reinterpret_cast<const char *>(entry) + 46, nameBytes);
    const uint8_t *extra = entry + 46 + nameBytes, *extraEnd = extra + extraBytes;
    while (extraEnd - extra >= 4) {
      uint16_t id = load<uint16_t>(extra), size = load<uint16_t>(extra + 2);
      const uint8_t *field = extra + 4, *fieldEnd = field + size;
      if (fieldEnd > extraEnd)
        break;
      if (id == 1)
        for (uint64_t *value : {&array.memberBytes, &array.storedBytes, &local})
          if (*value == 0xffffffff && fieldEnd - field >= 8) {
            *value = load<uint64_t>(field);
            field += 8;
          }
      extra = fieldEnd;
    }
    offset += 46ull + nameBytes + extraBytes + commentBytes;
    if (array.name.size() < 4 || array.name.compare(array.name.size() - 4, 4, ".npy") != 0)
      continue;
    array.name.resize(array.name.size() - 4);
    if (flags & 1)
      damaged("member '" + array.name + "' is encrypted");
    if (method != 0 && method != 8)
      damaged("member '" + array.name + "' is compressed by method " + std::to_string(method) +
              "; expected stored or deflated");
    const uint8_t *header = at(local, 30, "a member's header");
    if (load<uint32_t>(header) != 0x04034b50)
      damaged("member '" + array.name + "' does not begin where the directory says");
    array.deflated = method == 8;
    array.offset = local + 30 + load<uint16_t>(header + 26) + load<uint16_t>(header + 28);
    at(array.offset, array.storedBytes, ("member '" + array.name + "'").c_str());
    if (!array.deflated && array.storedBytes != array.memberBytes)
      damaged("member '" + array.name + "' has two different sizes");
    // No memory for what a file says that it cannot hold.
    if (array.deflated && array.memberBytes / kMostInflated > array.storedBytes)
      damaged("member '" + array.name + "' says that its " + std::to_string(array.storedBytes) +
              " bytes become " + std::to_string(array.memberBytes));
    readHeader(array);
    members.push_back(array);
  }
}

/// Inflates the first `bytes` bytes of a member. False if it has less or is damaged.
static bool inflateMember(const uint8_t *source, uint64_t sourceBytes, uint8_t *target, uint64_t bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  constexpr uint64_t kPart = 1u << 30;
  uint64_t in = 0, out = 0;
  int status = Z_OK;
  while (status == Z_OK && out < bytes) {
    uint64_t give = std::min(kPart, sourceBytes - in), room = std::min(kPart, bytes - out);
    stream.next_in = const_cast<uint8_t *>(source) + in;
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = target + out;
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += room - stream.avail_out;
    if (status == Z_BUF_ERROR)
      break;
  }
  inflateEnd(&stream);
  return out == bytes;
}

void NpzFile::readHeader(NpzArray &array) {
  std::string what = "array '" + array.name + "'";
  std::vector<uint8_t> start;
  auto take = [&](uint64_t bytes) {
    if (bytes > array.memberBytes)
      damaged(what + " has no .npy header");
    start.resize(bytes);
    if (!array.deflated)
      std::memcpy(start.data(), file + array.offset, bytes);
    else if (!inflateMember(file + array.offset, array.storedBytes, start.data(), bytes))
      damaged(what + " cannot be inflated");
  };
  take(kNpyPrefix);
  uint64_t bytes = npyHeaderBytes(start.data());
  if (!bytes)
    damaged(what + " has no .npy header of version 1, 2 or 3");
  take(bytes);
  if (std::string wrong = readNpyHeader(start.data(), array); !wrong.empty())
    damaged(what + wrong);
}

const NpzArray *NpzFile::find(const std::string &name) const {
  for (const NpzArray &array : members)
    if (array.name == name)
      return &array;
  return nullptr;
}

/// The zip checksum of many bytes, by as many threads as this process may run.
static uint32_t checksum(const uint8_t *bytes, uint64_t count) {
  constexpr uint64_t kBlock = 16 << 20;
  uint64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<uLong> sums(blocks);
  auto sizeOf = [&](uint64_t block) { return std::min(kBlock, count - block * kBlock); };
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    for (uint64_t block; (block = next++) < blocks;)
      sums[block] = crc32_z(0, bytes + block * kBlock, sizeOf(block));
  };
  std::vector<std::thread> threads;
  try {
    for (uint64_t i = 1; i < std::min<uint64_t>(blocks, std::thread::hardware_concurrency()); ++i)
      threads.push_back(startThread(work));
  } catch (const Error &) {
    // Those that there are do all of it.
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
  uLong sum = 0;
  for (uint64_t block = 0; block < blocks; ++block)
    sum = crc32_combine(sum, sums[block], static_cast<z_off_t>(sizeOf(block)));
  return static_cast<uint32_t>(sum);
}

void NpzFile::inflateWhole(const NpzArray &array, Opened &member) const {
  void *memory =
      sys::mmap(nullptr, array.memberBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(StatusFailure, filePath + ": cannot inflate array '" + array.name + "' (" +
                                   std::to_string(array.memberBytes) + " bytes): " + std::strerror(errno));
  member.bytes = static_cast<uint8_t *>(memory);
  member.inflated = array.memberBytes;
  if (inflateMember(file + array.offset, array.storedBytes, static_cast<uint8_t *>(memory),
                    array.memberBytes))
    return;
  sys::munmap(memory, array.memberBytes);
  damaged("array '" + array.name + "' cannot be inflated");
}

const char *NpzFile::data(const NpzArray &array) {
  auto known = opened.find(&array);
  if (known == opened.end()) {
    Opened member{file + array.offset};
    if (array.deflated)
      inflateWhole(array, member);
    bool right = checksum(member.bytes, array.memberBytes) == array.crc;
    if (!right && member.inflated)
      sys::munmap(const_cast<uint8_t *>(member.bytes), member.inflated);
    if (!right)
      damaged("array '" + array.name + "' is damaged: its checksum differs");
    known = opened.emplace(&array, member).first;
  }
  return reinterpret_cast<const char *>(known->second.bytes) + array.headerBytes;
}

std::vector<NpzArray> dsopt::runtime::readNpzHeaders(const std::string &path) {
  return NpzFile(path).arrays();
}
