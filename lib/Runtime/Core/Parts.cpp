//===- Parts.cpp - which elements of a parameter a part has ---------------===//

#include "Core/Parts.h"
#include "dsopt/Runtime/Manifest.h"

#include <cstring>

namespace dsopt::runtime {

/// Bytes that are read at once with what lies between them: files are checked by chunks of kHashedBytes, each
/// of which should be read once.
static constexpr int64_t kWindow = 16 * kHashedBytes;

void PartValues::read(const Parameter &parameter, int64_t begin, int64_t end, char *target) {
  int64_t size = elementBytes(parameter.type), padding = 0;
  if (begin < end)
    padding = std::clamp<int64_t>(elementAt(end - 1) + 1 - elementsOf(parameter), 0, end - begin);
  end -= padding;
  std::memset(target + (end - begin) * size, 0, padding * size);
  while (begin < end) {
    // Runs that are less than a chunk apart.
    int64_t first = elementAt(begin), last = first, stop = begin, runs = 0;
    while (stop < end) {
      int64_t from = elementAt(stop), count = end - stop;
      if (part.isShard())
        count = std::min(part.run - stop % part.run, count);
      if (runs > 0 && ((from - last) * size >= kHashedBytes || (from + count - first) * size > kWindow))
        break;
      last = from + count;
      stop += count;
      ++runs;
    }
    if (runs == 1) {
      values.read(parameter, first, last, target);
    } else {
      between.resize((last - first) * size);
      values.read(parameter, first, last, between.data());
      eachRun(parameter, part, shard, begin, stop, [&](int64_t from, int64_t at, int64_t count) {
        std::memcpy(target + (at - begin) * size, between.data() + (from - first) * size, count * size);
      });
    }
    target += (stop - begin) * size;
    begin = stop;
  }
}

} // namespace dsopt::runtime
