//===- Parameters.cpp - parameter values from files and to rank 0 ----------===//

#include "Core/Parameters.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {

static constexpr int64_t kChunk = 1 << 20;
/// Bytes of one message of visitParameters.
static constexpr int64_t kPiece = 16 << 20;

ParameterFiles::~ParameterFiles() {
  for (auto &[name, file] : files)
    if (file.data)
      munmap(const_cast<char *>(file.data), file.bytes);
}

const ParameterFiles::Mapping &ParameterFiles::open(const Parameter &parameter) {
  auto [it, added] = files.try_emplace(parameter.file);
  Mapping &file = it->second;
  std::string path = parameter.file;
  if (!folder.empty() && (path.empty() || path[0] != '/'))
    path = folder + "/" + path;
  if (added) {
    int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (descriptor < 0 || fstat(descriptor, &status) < 0) {
      int error = errno;
      files.erase(it);
      throw Error(StatusInput, "cannot read '" + path + "', which holds parameter '" + parameter.name +
                                   "': " + strerror(error));
    }
    file.bytes = status.st_size;
    void *data = file.bytes ? mmap(nullptr, file.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
    int error = errno;
    close(descriptor);
    if (data == MAP_FAILED) {
      files.erase(it);
      throw Error(StatusInput, "cannot map '" + path + "': " + strerror(error));
    }
    file.data = static_cast<const char *>(data);
  }
  if (file.bytes != parameter.file_bytes)
    throw Error(StatusInput, "'" + path + "', which holds parameter '" + parameter.name + "', has " +
                                 std::to_string(file.bytes) + " bytes; it had " +
                                 std::to_string(parameter.file_bytes) + " when the program was compiled");
  if (parameter.offset < 0 || parameter.offset + parameter.bytes > file.bytes)
    throw Error(StatusInput, "parameter '" + parameter.name + "' ends at byte " +
                                 std::to_string(parameter.offset + parameter.bytes) + " of '" + path +
                                 "', which has " + std::to_string(file.bytes));
  return file;
}

void ParameterFiles::read(const Parameter &parameter, int64_t begin, int64_t end, char *target) {
  if (begin >= end)
    return;
  int64_t size = elementBytes(parameter.type);
  if (parameter.bytes != elementsOf(parameter) * size)
    throw Error(StatusInput, "program table: parameter '" + parameter.name + "' has " +
                                 std::to_string(parameter.bytes) + " bytes, expected " +
                                 std::to_string(elementsOf(parameter) * size));
  if (parameter.file.empty() ||
      static_cast<int64_t>(parameter.chunks.size()) != (parameter.bytes + kChunk - 1) / kChunk)
    throw Error(StatusInput, "the values of parameter '" + parameter.name +
                                 "' were not there when the program was compiled" +
                                 (parameter.file.empty() ? "" : " (file '" + parameter.file + "')") +
                                 ": compile it with them");
  const Mapping &file = open(parameter);
  const char *data = file.data + parameter.offset;
  for (int64_t chunk = begin * size / kChunk; chunk * kChunk < end * size; ++chunk) {
    int64_t bytes = std::min(kChunk, parameter.bytes - chunk * kChunk);
    if (XXH3_64bits(data + chunk * kChunk, bytes) != parameter.chunks[chunk])
      throw Error(StatusInput, "parameter '" + parameter.name + "' in file '" + parameter.file +
                                   "' has changed since the program was compiled (bytes " +
                                   std::to_string(parameter.offset + chunk * kChunk) + " to " +
                                   std::to_string(parameter.offset + chunk * kChunk + bytes) + ")");
  }
  std::memcpy(target, data + begin * size, (end - begin) * size);
}

void loadParameters(const Program &program, const RankInfo &info, const Addresses &addresses,
                    ParameterFiles &files) {
  for (const Position::Load &load : program.positions[info.position].loads) {
    const Bucket &bucket = program.buckets[load.bucket];
    int64_t slice = bucket.padded / program.dp;
    int64_t first = load.sliced ? info.dpRank * slice : 0, last = load.sliced ? first + slice : bucket.padded;
    char *target = addresses.at(load.target);
    for (const Parameter &parameter : program.parameters) {
      if (parameter.bucket != load.bucket)
        continue;
      int64_t begin = std::max(first, parameter.bucket_offset);
      int64_t end = std::min(last, parameter.bucket_offset + elementsOf(parameter));
      files.read(parameter, begin - parameter.bucket_offset, end - parameter.bucket_offset,
                 target + (begin - first) * elementBytes(parameter.type));
    }
  }
}

/// Where a bucket's values are: a position that loads it, the owner first.
static const Position::Load *holder(const Program &program, int64_t bucket, int64_t &position) {
  auto find = [&](int64_t candidate) -> const Position::Load * {
    for (const Position::Load &load : program.positions[candidate].loads)
      if (load.bucket == bucket)
        return &load;
    return nullptr;
  };
  position = program.buckets[bucket].owner;
  const Position::Load *load = position < program.pp ? find(position) : nullptr;
  for (int64_t candidate = 0; !load && candidate < program.pp; ++candidate)
    if ((load = find(candidate)))
      position = candidate;
  return load;
}

void visitParameters(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                     ParameterFiles &files,
                     const std::function<void(const Parameter &, const char *value)> &visit) {
  std::vector<const Parameter *> order;
  int64_t most = 0;
  for (const Parameter &parameter : program.parameters) {
    order.push_back(&parameter);
    most = std::max(most, parameter.bytes);
  }
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) { return a->name < b->name; });
  std::vector<char> whole(info.rank == 0 ? most : 0);
  uint64_t tag = 0;
  for (const Parameter *parameter : order) {
    int64_t position, elements = elementsOf(*parameter), size = elementBytes(parameter->type);
    const Position::Load *load = holder(program, parameter->bucket, position);
    if (!load && info.rank == 0)
      files.read(*parameter, 0, elements, whole.data());
    int64_t slice = program.buckets[parameter->bucket].padded / program.dp;
    for (int64_t dpRank = 0; load && dpRank < (load->sliced ? program.dp : 1); ++dpRank) {
      int64_t first = load->sliced ? dpRank * slice : 0;
      int64_t begin = std::max(first, parameter->bucket_offset);
      int64_t end = std::min(load->sliced ? first + slice : parameter->bucket_offset + elements,
                             parameter->bucket_offset + elements);
      int holderRank = static_cast<int>(position * program.dp + dpRank);
      for (int64_t at = begin; at < end; at += kPiece / size, ++tag) {
        int64_t bytes = std::min(kPiece / size, end - at) * size;
        char *target = whole.data() + (at - parameter->bucket_offset) * size;
        const char *source =
            info.rank == holderRank ? addresses.at(load->target) + (at - first) * size : nullptr;
        if (info.rank == 0 && source) {
          std::memcpy(target, source, bytes);
        } else if (info.rank == 0) {
          engine.startRecv(static_cast<int>(Stream::Recv), holderRank, target, bytes, tag);
          engine.complete(static_cast<int>(Stream::Recv));
        } else if (source) {
          engine.startSend(static_cast<int>(Stream::Send), 0, source, bytes, tag, TrafficClass::Control);
          engine.complete(static_cast<int>(Stream::Send));
        }
      }
    }
    if (info.rank == 0)
      visit(*parameter, whole.data());
  }
  engine.barrier();
}

} // namespace dsopt::runtime
