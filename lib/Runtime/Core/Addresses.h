//===- Addresses.h - where a rank's buffers lie -----------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_ADDRESSES_H
#define DSOPT_LIB_RUNTIME_CORE_ADDRESSES_H

#include "dsopt/Runtime/Session.h"

#include <unordered_map>
#include <utility>

namespace dsopt::runtime {

/// Bytes of one element; an Error for types that programs do not have.
inline int64_t elementBytes(const std::string &type) {
  static constexpr std::pair<const char *, int> types[] = {
      {"f32", 4}, {"f64", 8},  {"f16", 2},  {"bf16", 2}, {"i64", 8},  {"i32", 4},
      {"i16", 2}, {"i8", 1},   {"i1", 1},   {"ui64", 8}, {"ui32", 4}, {"ui16", 2},
      {"ui8", 1}, {"si64", 8}, {"si32", 4}, {"si16", 2}, {"si8", 1}};
  for (const auto &[name, bytes] : types)
    if (type == name)
      return bytes;
  throw Error(StatusInput, "program table: unknown element type '" + type + "'");
}

inline int64_t elementsOf(const Parameter &parameter) {
  int64_t count = 1;
  for (int64_t size : parameter.shape)
    count *= size;
  return count;
}

/// Where a parameter lies: its parts, or the one place that has all of it.
inline std::vector<Part> partsOf(const Parameter &parameter) {
  if (!parameter.parts.empty())
    return parameter.parts;
  return {{parameter.bucket, parameter.bucket_offset, 0, elementsOf(parameter)}};
}

class Addresses {
public:
  /// `memories` are where the position's memories begin. `inMemory`: constants, too, are there.
  Addresses(const Position &position, const RankInfo &info, const std::vector<char *> &memories,
            const SymbolResolver &resolve, bool inMemory = false)
      : position(position), info(info) {
    for (const Buffer &buffer : position.buffers) {
      char *start = memories[buffer.memory] + buffer.offset;
      if (!buffer.symbol.empty() && !inMemory) {
        start = static_cast<char *>(resolve(buffer.symbol));
        if (!start)
          throw Error(StatusInput, "the program has no constant '" + buffer.symbol + "'");
      }
      byName.emplace(buffer.name, starts.size());
      starts.push_back(start);
    }
  }

  char *at(const Ref &ref) const {
    return starts[ref.buffer] + ref.slot * position.buffers[ref.buffer].stride + info.offsetOf(ref);
  }
  /// The buffer of that name, or null.
  const Buffer *find(const std::string &name) const {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : &position.buffers[found->second];
  }
  char *at(const Buffer &buffer) const { return starts[&buffer - position.buffers.data()]; }

private:
  const Position &position;
  RankInfo info;
  std::vector<char *> starts;
  std::unordered_map<std::string, size_t> byName;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_ADDRESSES_H
