//===- SavedState.cpp - a run's state to a checkpoint ---------------------===//

#include "Core/SavedState.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {
namespace {

[[noreturn]] void failed(const std::string &path) {
  throw Error(StatusFailure, path + ": writing failed: " + std::strerror(errno));
}

/// The files of a checkpoint, open for writing.
class Files {
public:
  explicit Files(std::string folder) : folder(std::move(folder)) {}
  ~Files() {
    for (auto &[name, descriptor] : files)
      sys::close(descriptor);
  }
  /// Makes a file of its full size, so that a full disk is found before anything is written.
  void allocate(const std::string &name, const std::string &header, int64_t bytes) {
    int descriptor = open(name, O_RDWR | O_CREAT | O_EXCL);
    int result;
    while ((result = sys::fallocate(descriptor, 0, 0, bytes)) != 0 && errno == EINTR)
      ;
    bool unknown = result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
    if ((result != 0 && !unknown) || (unknown && sys::ftruncate(descriptor, bytes) != 0))
      failed(path(name));
    write(name, 0, header.data(), header.size());
  }
  void write(const std::string &name, int64_t offset, const char *data, int64_t bytes) {
    if (!writeFully(open(name, O_RDWR), offset, data, bytes))
      failed(path(name));
  }
  void sync() {
    for (auto &[name, descriptor] : files)
      if (sys::fsync(descriptor) != 0)
        failed(path(name));
  }
  /// What some file systems tell only now.
  void close() {
    while (!files.empty()) {
      auto [name, descriptor] = *files.begin();
      files.erase(files.begin());
      if (sys::close(descriptor) != 0 && errno != EINTR)
        failed(path(name));
    }
  }

private:
  int open(const std::string &name, int flags) {
    auto it = files.find(name);
    if (it != files.end())
      return it->second;
    int descriptor = sys::open(path(name).c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
      throw Error(StatusFailure, path(name) + ": cannot be written: " + std::strerror(errno));
    files[name] = descriptor;
    return descriptor;
  }
  std::string path(const std::string &name) const { return folder + "/" + name; }
  std::string folder;
  std::map<std::string, int> files;
};

/// A hash and which it is: (tensor, chunk).
struct Hash {
  int64_t tensor = -1, chunk = 0;
  uint64_t value = 0;
};

/// One save of one rank.
class Saver {
public:
  Saver(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
        ThreadPool *pool)
      : program(program), info(info), addresses(addresses), engine(engine), pool(pool), saved(program),
        headers(saved.layOut()), segments(segmentsOf(program, saved)) {}

  void allocate(Files &files) {
    for (const Parameter &tensor : saved.tensors)
      if (auto it = headers.find(tensor.file); it != headers.end()) {
        files.allocate(it->first, it->second, tensor.file_bytes);
        headers.erase(it);
      }
  }

  /// Writes what this rank has alone, and the units that it owns.
  void write(Files &files) {
    std::vector<SharedRange> units = sharedUnits(saved, segments);
    std::vector<std::pair<int64_t, int64_t>> alone = writtenAlone(segments, units);
    for (size_t i = 0; i < segments.size(); ++i)
      if (auto [begin, end] = alone[i]; segments[i].rank == info.rank && begin < end)
        files.write(fileOf(segments[i]), begin, addressOf(segments[i], begin), end - begin);
    for (const SharedRange &unit : units)
      if (const char *bytes = bringTogether(unit))
        files.write(fileOf(segments[unit.first]), unit.begin, bytes, unit.end - unit.begin);
  }

  /// The hashes of the chunks that this rank has alone or owns.
  std::vector<Hash> hash() {
    std::vector<Hash> hashes;
    struct Chunk {
      const char *address;
      int64_t bytes;
    };
    std::vector<Chunk> chunks; // of the hashes
    for (const Segment &segment : segments) {
      if (segment.rank != info.rank)
        continue;
      const Parameter &tensor = saved.tensors[segment.tensor];
      int64_t begin = segment.begin - tensor.offset, end = segment.end - tensor.offset;
      for (int64_t chunk = (begin + kHashedBytes - 1) / kHashedBytes; chunk * kHashedBytes < end; ++chunk) {
        int64_t first = chunk * kHashedBytes, last = std::min(first + kHashedBytes, tensor.bytes);
        if (last > end)
          break;
        hashes.push_back({static_cast<int64_t>(segment.tensor), chunk, 0});
        chunks.push_back({addressOf(segment, tensor.offset + first), last - first});
      }
    }
    auto body = [&](int64_t i, int) { hashes[i].value = XXH3_64bits(chunks[i].address, chunks[i].bytes); };
    if (pool)
      pool->forEach(static_cast<int64_t>(hashes.size()), 1, body);
    else
      for (size_t i = 0; i < hashes.size(); ++i)
        body(static_cast<int64_t>(i), 0);
    for (const SharedRange &range : sharedChunks(saved, segments))
      if (const char *bytes = bringTogether(range)) {
        size_t tensor = segments[range.first].tensor;
        hashes.push_back({static_cast<int64_t>(tensor),
                          (range.begin - saved.tensors[tensor].offset) / kHashedBytes,
                          XXH3_64bits(bytes, range.end - range.begin)});
      }
    return hashes;
  }

  /// All ranks' hashes into the tensors, which are then complete.
  std::vector<Parameter> complete(std::vector<Hash> hashes) {
    int64_t mine = static_cast<int64_t>(hashes.size()), ranks = engine.size();
    std::vector<int64_t> counts(ranks);
    engine.exchange(&mine, sizeof mine, counts.data());
    hashes.resize(*std::max_element(counts.begin(), counts.end()));
    std::vector<Hash> all(hashes.size() * ranks);
    engine.exchange(hashes.data(), static_cast<int64_t>(hashes.size() * sizeof(Hash)), all.data());
    for (Parameter &tensor : saved.tensors)
      tensor.chunks.resize((tensor.bytes + kHashedBytes - 1) / kHashedBytes);
    for (const Hash &hash : all)
      if (hash.tensor >= 0)
        saved.tensors[hash.tensor].chunks[hash.chunk] = hash.value;
    return std::move(saved.tensors);
  }

private:
  const std::string &fileOf(const Segment &segment) const { return saved.tensors[segment.tensor].file; }

  /// Where this rank has byte `at` of the file, in one of its segments.
  char *addressOf(const Segment &segment, int64_t at) const {
    const Parameter &tensor = saved.tensors[segment.tensor];
    const HeldTensor &held = saved.held[segment.tensor];
    int64_t slice = program.buckets[held.parameter->bucket].padded / program.dp;
    int64_t start =
        held.sliced ? info.dpRank * slice : 0; // element of the bucket that the buffer begins with
    return addresses.at(held.buffer) + (held.parameter->bucket_offset - start) * elementBytes(tensor.type) +
           (at - tensor.offset);
  }

  /// The bytes of a range at its owner, null elsewhere. Ranks come to all ranges in one order, so that each
  /// message finds its receiver.
  const char *bringTogether(const SharedRange &range) {
    bool isMine = range.owner == info.rank;
    if (isMine)
      together.resize(range.end - range.begin);
    for (size_t i = range.first; i < range.last; ++i) {
      const Segment &segment = segments[i];
      int64_t begin = std::max(segment.begin, range.begin), end = std::min(segment.end, range.end);
      char *place = together.data() + (begin - range.begin);
      if (isMine && segment.rank == info.rank) {
        std::memcpy(place, addressOf(segment, begin), end - begin);
      } else if (isMine) {
        engine.startRecv(Engine::kControlSlot, segment.rank, place, end - begin, tag);
        engine.complete(Engine::kControlSlot);
      } else if (segment.rank == info.rank) {
        engine.startSend(Engine::kControlSlot, range.owner, addressOf(segment, begin), end - begin, tag,
                         TrafficClass::Control);
        engine.complete(Engine::kControlSlot);
      }
      ++tag;
    }
    return isMine ? together.data() : nullptr;
  }

  const Program &program;
  const RankInfo &info;
  const Addresses &addresses;
  Engine &engine;
  ThreadPool *pool;
  SavedTensors saved;
  std::map<std::string, std::string> headers;
  std::vector<Segment> segments;
  std::vector<char> together;
  uint64_t tag = 0;
};
} // namespace

void saveState(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
               ThreadPool *pool, const std::string &checkpoint, Manifest &manifest) {
  Saver saver(program, info, addresses, engine, pool);
  bool first = info.rank == 0;
  Draft draft(checkpoint, manifest.lineage.run, first);
  Files files(draft.path);
  if (first)
    saver.allocate(files);
  fault::point("save.allocate");
  engine.barrier();
  saver.write(files);
  fault::point("save.pieces");
  files.sync();
  files.close();
  fault::point("save.sync");
  std::vector<Hash> hashes = saver.hash();
  fault::point("save.hash");
  // Also a barrier: what all have written is on disk.
  manifest.tensors = saver.complete(std::move(hashes));
  if (first) {
    writeManifest(manifest, draft.path);
    fault::point("save.manifest");
    draft.commit();
  }
  engine.barrier();
}

} // namespace dsopt::runtime
