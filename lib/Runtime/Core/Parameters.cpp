//===- Parameters.cpp - parameter values from files and to rank 0 ----------===//

#include "Core/Parameters.h"
#include "Core/FloatTypes.h"
#include "Core/Parts.h"
#include "Core/StateMessages.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/Manifest.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {

static constexpr int64_t kChunk = kHashedBytes;
/// Bytes of one message of visitParameters, and elements that are converted at once.
static constexpr int64_t kPiece = 16 << 20;

ParameterFiles::~ParameterFiles() {
  for (auto &[name, file] : files)
    sys::close(file.descriptor);
}

std::string ParameterFiles::pathOf(const Parameter &parameter) const {
  const std::string &path = parameter.file;
  return !folder.empty() && (path.empty() || path[0] != '/') ? folder + "/" + path : path;
}

const ParameterFiles::File &ParameterFiles::open(const Parameter &parameter) {
  auto it = files.find(parameter.file);
  std::string path = pathOf(parameter);
  if (it == files.end()) {
    int descriptor = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (descriptor < 0 || sys::fstat(descriptor, &status) < 0) {
      int error = errno;
      if (descriptor >= 0)
        sys::close(descriptor);
      throw Error(readStatus(error), "cannot read '" + path + "', which holds parameter '" + parameter.name +
                                         "': " + strerror(error));
    }
    it = files.emplace(parameter.file, File{descriptor, status.st_size}).first;
  }
  const File &file = it->second;
  if (file.bytes != parameter.file_bytes)
    throw Error(StatusInput, "'" + path + "', which holds parameter '" + parameter.name + "', has " +
                                 std::to_string(file.bytes) + " bytes; it had " +
                                 std::to_string(parameter.file_bytes) + " when " + moment);
  if (parameter.offset < 0 || parameter.offset + parameter.bytes > file.bytes)
    throw Error(StatusInput, "parameter '" + parameter.name + "' ends at byte " +
                                 std::to_string(parameter.offset + parameter.bytes) + " of '" + path +
                                 "', which has " + std::to_string(file.bytes));
  return file;
}

/// How reading a chunk went: an error number, or one of these.
static constexpr int kSame = 0, kChanged = -1;

/// Bytes [begin, end) of a parameter, whose chunk is checked whole: it is read to its target, while what
/// lies beside them passes through a buffer.
static int readChunk(int descriptor, const Parameter &parameter, int64_t chunk, int64_t begin, int64_t end,
                     char *target) {
  int64_t first = chunk * kChunk, last = std::min(first + kChunk, parameter.bytes);
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  char beside[32 << 10];
  auto read = [&](int64_t at, char *to, int64_t bytes) {
    if (!readFully(descriptor, parameter.offset + at, to, bytes))
      return errno ? errno : kChanged;
    XXH3_64bits_update(&hash, to, bytes);
    return kSame;
  };
  auto skip = [&](int64_t from, int64_t to) {
    for (int64_t bytes; from < to; from += bytes) {
      bytes = std::min<int64_t>(sizeof beside, to - from);
      if (int error = read(from, beside, bytes))
        return error;
    }
    return kSame;
  };
  int64_t from = std::max(first, begin), to = std::min(last, end);
  int error = skip(first, from);
  if (!error)
    error = read(from, target + (from - begin), to - from);
  if (!error)
    error = skip(to, last);
  if (!error && XXH3_64bits_digest(&hash) != parameter.chunks[chunk])
    error = kChanged;
  return error;
}

void ParameterFiles::read(const Parameter &parameter, int64_t begin, int64_t end, char *target) {
  if (parameter.source.empty() || parameter.source == parameter.type)
    return readBytes(parameter, begin, end, target);
  if (!isNarrowFloat(parameter.source) || parameter.type != "f32")
    throw Error(StatusInput, "program table: parameter '" + parameter.name + "' of type " + parameter.source +
                                 " cannot be read as " + parameter.type);
  std::vector<char> piece(2 * std::min(kPiece, std::max<int64_t>(end - begin, 0)));
  for (int64_t at = begin; at < end; at += kPiece) {
    int64_t count = std::min(kPiece, end - at);
    readBytes(parameter, at, at + count, piece.data());
    auto *wide = reinterpret_cast<float *>(target) + (at - begin);
    for (int64_t i = 0; i < count; ++i)
      wide[i] = widened(parameter.source, piece.data() + 2 * i);
  }
}

void ParameterFiles::readBytes(const Parameter &parameter, int64_t begin, int64_t end, char *target) {
  if (begin >= end)
    return;
  int64_t size = elementBytes(parameter.source.empty() ? parameter.type : parameter.source);
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
  int descriptor = open(parameter).descriptor;
  begin *= size, end *= size;
  int64_t firstChunk = begin / kChunk, count = (end - 1) / kChunk - firstChunk + 1;
  std::atomic<int64_t> bad{parameter.bytes}; // the first chunk that is not as it was
  std::atomic<int> failure{kSame};           // an error number, if the file could not be read
  auto body = [&](int64_t index, int) {
    int64_t chunk = firstChunk + index;
    int result = readChunk(descriptor, parameter, chunk, begin, end, target);
    if (result > 0)
      failure = result;
    if (result != kChanged)
      return;
    for (int64_t seen = bad; chunk < seen && !bad.compare_exchange_weak(seen, chunk);)
      ;
  };
  if (pool)
    pool->forEach(count, 1, body);
  else
    for (int64_t index = 0; index < count; ++index)
      body(index, 0);
  if (failure)
    throw Error(StatusFailure, "parameter '" + parameter.name + "' cannot be read from '" +
                                   pathOf(parameter) + "': " + strerror(failure));
  if (int64_t chunk = bad; chunk < parameter.bytes)
    throw Error(StatusInput,
                "parameter '" + parameter.name + "' in file '" + pathOf(parameter) + "' has changed since " +
                    moment + " (bytes " + std::to_string(parameter.offset + chunk * kChunk) + " to " +
                    std::to_string(parameter.offset + std::min((chunk + 1) * kChunk, parameter.bytes)) + ")");
}

/// What the values of a load are stored as.
static const std::string &storedType(const Program &program, const Position::Load &load,
                                     const Parameter &parameter) {
  return load.master ? parameter.type : program.buckets[load.bucket].type;
}

/// A value that overflows from the beginning would never let a step apply.
static void checkFits(const Parameter &parameter, const PartValues &part, const float *values, int64_t first,
                      int64_t count) {
  constexpr float kTooLarge = 65520; // from here on infinity is nearer
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(values[i]) >= kTooLarge && !std::isinf(values[i]))
      throw Error(StatusInput, "parameter '" + parameter.name + "' holds " + jsonNumber(values[i]) +
                                   " in element " + std::to_string(part.elementAt(first + i)) +
                                   ", more than fp16 can (65504): -freeze=" + parameter.name +
                                   " keeps it in fp32 if no product reads it; or give -precision=bf16");
}

/// Reads elements [begin, end) of a part of an f32 parameter and stores them in a narrow `type`.
static void readRounded(PartValues &values, const Parameter &parameter, const std::string &type,
                        int64_t begin, int64_t end, char *target) {
  std::vector<float> piece(std::min(kChunk, std::max<int64_t>(end - begin, 0)));
  for (int64_t at = begin; at < end; at += kChunk) {
    int64_t count = std::min(kChunk, end - at);
    values.read(parameter, at, at + count, reinterpret_cast<char *>(piece.data()));
    char *place = target + (at - begin) * elementBytes(type);
    if (type == "bf16") {
      convert(piece.data(), reinterpret_cast<uint16_t *>(place), count);
      continue;
    }
    convert(piece.data(), reinterpret_cast<_Float16 *>(place), count);
    checkFits(parameter, values, piece.data(), at, count);
  }
}

void loadParameters(const Program &program, const RankInfo &info, const Addresses &addresses,
                    ParameterValues &masters, ParameterValues *beside) {
  ParameterTable table(program);
  for (const Position::Load &load : program.positions[info.position].loads) {
    const Bucket &bucket = program.buckets[load.bucket];
    int64_t slice = program.sliceOf(bucket);
    int64_t first = load.sliced ? info.slice * slice : 0, last = load.sliced ? first + slice : bucket.padded;
    char *target = addresses.at(load.target);
    for (const auto &[one, part] : table.ofBucket(load.bucket)) {
      const Parameter &parameter = *one;
      if (!masters.has(parameter))
        continue;
      int64_t begin = std::max(first, part.bucket_offset);
      int64_t end = std::min(last, part.bucket_offset + part.elements);
      const std::string &type = storedType(program, load, parameter);
      char *place = target + (begin - first) * elementBytes(type);
      begin -= part.bucket_offset;
      end -= part.bucket_offset;
      PartValues values(load.master || !beside ? masters : *beside, part, tensorRank(info));
      if (type == parameter.type)
        values.read(parameter, begin, end, place);
      else if (parameter.type == "f32" && isNarrowFloat(type))
        readRounded(values, parameter, type, begin, end, place);
      else
        throw Error(StatusInput, "program table: parameter '" + parameter.name + "' of type " +
                                     parameter.type + " cannot be stored as " + type);
    }
  }
}

ParameterTable::ParameterTable(const Program &program)
    : program(program), buckets(program.buckets.size()), loads(program.buckets.size()) {
  for (const Parameter &parameter : program.parameters)
    for (const Part &part : partsOf(parameter))
      buckets[part.bucket].push_back({&parameter, part});
  for (size_t position = 0; position < program.positions.size(); ++position)
    for (const Position::Load &load : program.positions[position].loads)
      loads[load.bucket].push_back({position, &load});
}

const Position::Load *ParameterTable::holder(const Parameter &parameter, const Part &part,
                                             int64_t &position) const {
  const Position::Load *found = nullptr;
  int64_t owner = program.buckets[part.bucket].owner;
  for (auto [candidate, load] : loads[part.bucket]) {
    bool holds = storedType(program, *load, parameter) == parameter.type;
    // A master is the parameter, whatever lies beside it.
    bool isBetter = !found || (candidate == owner && (position != owner || load->master));
    if (!holds || !isBetter)
      continue;
    found = load;
    position = candidate;
  }
  return found;
}

void visitParameters(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                     ParameterValues &values,
                     const std::function<void(const Parameter &, const char *value)> &visit) {
  std::vector<const Parameter *> order;
  int64_t most = 0;
  for (const Parameter &parameter : program.parameters) {
    order.push_back(&parameter);
    most = std::max(most, elementsOf(parameter) * elementBytes(parameter.type));
  }
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) { return a->name < b->name; });
  // What this rank holds whole is shown where it is; the rest is collected.
  ParameterTable table(program);
  std::vector<char> whole, piece;
  uint64_t tag = 0;
  for (const Parameter *parameter : order) {
    int64_t size = elementBytes(parameter->type);
    std::vector<Part> parts = partsOf(*parameter);
    int64_t position = 0;
    const Position::Load *load = table.holder(*parameter, parts.front(), position);
    if (parts.size() == 1 && !parts.front().isShard() && load && !load->sliced && position == 0) {
      if (info.rank == 0)
        visit(*parameter, addresses.at(load->target) + parts.front().bucket_offset * size);
      continue;
    }
    if (info.rank == 0)
      whole.resize(most);
    for (const Part &part : parts) {
      position = 0;
      load = table.holder(*parameter, part, position);
      int64_t slice = program.sliceOf(program.buckets[part.bucket]);
      for (int64_t shard = 0; shard < countShards(program, part); ++shard) {
        /// Gives rank 0 elements of the part: those that lie in `source` of rank `from`, or nowhere.
        auto collect = [&](int64_t begin, int64_t end, int from, const char *source) {
          for (int64_t at = begin; at < end; at += kPiece / size, ++tag) {
            int64_t stop = std::min(at + kPiece / size, end), bytes = (stop - at) * size;
            const char *mine = source ? source + (at - begin) * size : nullptr;
            if (load && info.rank == from && from != 0)
              sendState(engine, program, addresses, load->target, 0, mine, bytes, tag);
            if (info.rank != 0)
              continue;
            if (!mine) {
              piece.resize(bytes);
              mine = piece.data();
              if (load)
                receiveState(engine, program, load->target, from, piece.data(), bytes, tag);
              else
                PartValues(values, part, shard).read(*parameter, at, stop, piece.data());
            }
            eachRun(*parameter, part, shard, at, stop, [&](int64_t first, int64_t element, int64_t count) {
              std::memcpy(whole.data() + first * size, mine + (element - at) * size, count * size);
            });
          }
        };
        if (!load)
          collect(0, part.elements, 0, nullptr);
        for (int64_t i = 0; load && i < (load->sliced ? program.slices() : 1); ++i) {
          int64_t first = load->sliced ? i * slice : 0, partEnd = part.bucket_offset + part.elements;
          int64_t begin = std::max(first, part.bucket_offset);
          int64_t end = std::min(load->sliced ? first + slice : partEnd, partEnd);
          int holder = program.rankAt(position, i, shard);
          collect(begin - part.bucket_offset, end - part.bucket_offset, holder,
                  info.rank == holder ? addresses.at(load->target) + (begin - first) * size : nullptr);
        }
      }
    }
    if (info.rank == 0)
      visit(*parameter, whole.data());
  }
  engine.barrier();
}

} // namespace dsopt::runtime
