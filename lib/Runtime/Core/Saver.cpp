//===- Saver.cpp - a run's state to a checkpoint --------------------------===//

#include "Core/Saver.h"
#include "Core/StateMessages.h"
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

[[noreturn]] static void failed(const std::string &path) {
  throw Error(StatusFailure, path + ": writing failed: " + std::strerror(errno));
}

/// The files of a checkpoint, open for writing.
class Saver::Files {
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

//===----------------------------------------------------------------------===//
// What a rank saves
//===----------------------------------------------------------------------===//

SavePlan::SavePlan(const Program &program, const RankInfo &info, const Addresses &addresses, bool hasPending,
                   bool hasErrors, bool isApart)
    : program(program), info(info), addresses(addresses), saved(program, hasPending, hasErrors, isApart),
      headers(saved.layOut()), segments(segmentsOf(program, saved)), units(sharedUnits(saved, segments)),
      chunks(sharedChunks(saved, segments)) {
  std::vector<std::pair<int64_t, int64_t>> alone = writtenAlone(segments, units);
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment &segment = segments[i];
    if (segment.rank != info.rank)
      continue;
    const Parameter &tensor = saved.tensors[segment.tensor];
    for (int64_t at = segment.begin; at < segment.end;) {
      int64_t chunk = (at - tensor.offset) / kHashedBytes, first = tensor.offset + chunk * kHashedBytes,
              last = std::min(first + kHashedBytes, tensor.offset + tensor.bytes);
      SavedPiece piece;
      piece.segment = i;
      piece.begin = at;
      piece.end = std::min(last, segment.end);
      piece.writtenBegin = std::max(at, alone[i].first);
      piece.writtenEnd = std::max(piece.writtenBegin, std::min(piece.end, alone[i].second));
      piece.hashed = at == first && piece.end == last;
      piece.address = addressOf(segment, at);
      if (piece.hashed || piece.writtenBegin < piece.writtenEnd)
        pieces.push_back(piece);
      at = piece.end;
    }
  }
}

char *SavePlan::addressOf(const Segment &segment, int64_t at) const {
  const HeldTensor &held = saved.held[segment.held];
  int64_t slice = program.sliceOf(program.buckets[held.part.bucket]);
  int64_t start = held.sliced ? info.slice * slice : 0; // element of the bucket that the buffer begins with
  int64_t size = elementBytes(saved.tensors[segment.tensor].type);
  return addresses.at(held.buffer) + (held.part.bucket_offset + segment.element - start) * size +
         (at - segment.begin);
}

//===----------------------------------------------------------------------===//
// One save
//===----------------------------------------------------------------------===//

Saver::Saver(const SavePlan &plan, Engine &engine, const std::string &checkpoint, Manifest manifest,
             const Replaced &replaced)
    : plan(plan), engine(engine), manifest(std::move(manifest)), replaced(replaced),
      isFirst(plan.info.rank == 0), draft(checkpoint, this->manifest.lineage.run, isFirst),
      files(std::make_unique<Files>(draft.path)) {}
Saver::~Saver() = default;

const std::string &Saver::fileOf(const Segment &segment) const {
  return plan.saved.tensors[segment.tensor].file;
}

void Saver::begin() {
  if (isFirst) {
    std::map<std::string, std::string> headers = plan.headers;
    for (const Parameter &tensor : plan.saved.tensors)
      if (auto it = headers.find(tensor.file); it != headers.end()) {
        files->allocate(it->first, it->second, tensor.file_bytes);
        headers.erase(it);
      }
    writeReplaced();
  }
  fault::point("save.allocate");
  engine.barrier();
  for (const SharedRange &unit : plan.units)
    if (const char *bytes = bringTogether(unit))
      files->write(fileOf(plan.segments[unit.first]), unit.begin, bytes, unit.end - unit.begin);
  for (const SharedRange &range : plan.chunks)
    if (const char *bytes = bringTogether(range)) {
      size_t tensor = plan.segments[range.first].tensor;
      hashes.push_back({static_cast<int64_t>(tensor),
                        (range.begin - plan.saved.tensors[tensor].offset) / kHashedBytes,
                        XXH3_64bits(bytes, range.end - range.begin)});
    }
}

void Saver::writeReplaced() {
  beside = replaced.tensors(plan.program);
  std::vector<Parameter *> all;
  for (Parameter &tensor : beside)
    all.push_back(&tensor);
  if (all.empty())
    return;
  std::string header = layOutSafetensors(all);
  const std::string file = "replaced.safetensors";
  files->allocate(file, header, beside.front().file_bytes);
  std::vector<char> piece(kHashedBytes);
  for (Parameter &tensor : beside) {
    tensor.file = file;
    int64_t size = elementBytes(tensor.type);
    for (int64_t at = 0; at < tensor.bytes; at += kHashedBytes) {
      int64_t bytes = std::min(kHashedBytes, tensor.bytes - at);
      replaced.read(tensor, at / size, (at + bytes) / size, piece.data());
      files->write(file, tensor.offset + at, piece.data(), bytes);
      tensor.chunks.push_back(XXH3_64bits(piece.data(), bytes));
    }
  }
}

const char *Saver::bringTogether(const SharedRange &range) {
  int rank = plan.info.rank;
  bool isMine = range.owner == rank;
  if (isMine)
    together.resize(range.end - range.begin);
  for (size_t i = range.first; i < range.last; ++i) {
    const Segment &segment = plan.segments[i];
    int64_t begin = std::max(segment.begin, range.begin), end = std::min(segment.end, range.end);
    char *place = together.data() + (begin - range.begin);
    const Ref &held = plan.saved.held[segment.held].buffer;
    if (isMine && segment.rank == rank) {
      std::memcpy(place, plan.addressOf(segment, begin), end - begin);
    } else if (isMine) {
      receiveState(engine, plan.program, held, segment.rank, place, end - begin, tag);
    } else if (segment.rank == rank) {
      sendState(engine, plan.program, plan.addresses, held, range.owner, plan.addressOf(segment, begin),
                end - begin, tag);
    }
    ++tag;
  }
  return isMine ? together.data() : nullptr;
}

void Saver::write(const SavedPiece &piece, const char *bytes) {
  const Segment &segment = plan.segments[piece.segment];
  if (piece.writtenBegin < piece.writtenEnd)
    files->write(fileOf(segment), piece.writtenBegin, bytes + (piece.writtenBegin - piece.begin),
                 piece.writtenEnd - piece.writtenBegin);
  if (piece.hashed)
    hashes.push_back({static_cast<int64_t>(segment.tensor),
                      (piece.begin - plan.saved.tensors[segment.tensor].offset) / kHashedBytes,
                      XXH3_64bits(bytes, piece.end - piece.begin)});
}

void Saver::finish() {
  fault::point("save.pieces");
  files->sync();
  files->close();
  fault::point("save.sync");
}

void Saver::agree() {
  fault::point("save.hash");
  int64_t mine = static_cast<int64_t>(hashes.size()), ranks = engine.size();
  std::vector<int64_t> counts(ranks);
  engine.exchange(&mine, sizeof mine, counts.data());
  hashes.resize(*std::max_element(counts.begin(), counts.end()));
  std::vector<Hash> all(hashes.size() * ranks);
  engine.exchange(hashes.data(), static_cast<int64_t>(hashes.size() * sizeof(Hash)), all.data());
  if (!isFirst)
    return;
  manifest.tensors = plan.saved.tensors;
  for (Parameter &tensor : manifest.tensors)
    tensor.chunks.resize((tensor.bytes + kHashedBytes - 1) / kHashedBytes);
  for (const Hash &hash : all)
    if (hash.tensor >= 0)
      manifest.tensors[hash.tensor].chunks[hash.chunk] = hash.value;
  manifest.tensors.insert(manifest.tensors.end(), beside.begin(), beside.end());
}

void Saver::commit() {
  if (!isFirst)
    return;
  writeManifest(manifest, draft.path);
  fault::point("save.manifest");
  draft.commit();
}

void saveState(const SavePlan &plan, Engine &engine, const std::string &checkpoint, const Manifest &manifest,
               const Replaced &replaced) {
  Saver saver(plan, engine, checkpoint, manifest, replaced);
  saver.begin();
  for (const SavedPiece &piece : plan.pieces)
    saver.write(piece, piece.address);
  saver.finish();
  saver.agree();
  saver.commit();
  engine.barrier();
}

} // namespace dsopt::runtime
