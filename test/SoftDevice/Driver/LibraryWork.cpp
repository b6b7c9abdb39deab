//===- LibraryWork.cpp - work of libraries in streams ---------------------===//

#include "LibraryWork.h"

#include "State.h"

#include <algorithm>

namespace softdevice {

namespace {
struct Line {
  uint64_t begin, end;
  size_t region;
};
} // namespace

/// The lines of regions, neighbours as one, by address.
static std::vector<Line> linesOf(const std::vector<Region> &regions) {
  std::vector<Line> lines;
  for (size_t number = 0; number < regions.size(); ++number) {
    const Region &region = regions[number];
    // A matrix that is there for all of the batch is read once.
    uint64_t count = region.stride == 0 && !region.isWritten ? 1 : region.count;
    for (uint64_t matrix = 0; matrix < count; ++matrix)
      for (uint64_t line = 0; line < region.lines; ++line) {
        uint64_t begin = region.address + matrix * region.stride + line * region.pitch;
        if (!lines.empty() && lines.back().region == number && lines.back().end == begin)
          lines.back().end += region.bytes;
        else
          lines.push_back({begin, begin + region.bytes, number});
      }
  }
  std::sort(lines.begin(), lines.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
  return lines;
}

static void checkOverlap(const std::vector<Line> &lines, const std::vector<Region> &regions,
                         const std::string &what) {
  // How far what is before reaches: of what is read, and of what is written.
  uint64_t read = 0, written = 0;
  for (const Line &line : lines) {
    bool writes = regions[line.region].isWritten;
    if (written > line.begin || (writes && read > line.begin))
      throw Fault(what + " writes bytes that it also reads elsewhere or writes twice");
    uint64_t &furthest = writes ? written : read;
    furthest = std::max(furthest, line.end);
  }
}

CUresult submitLibraryWork(CUstream stream, const std::string &what, const std::vector<Region> &regions,
                           LibraryWork work) {
  return call([&](State &state) {
    std::vector<Memory *> memories;
    for (const Region &region : regions)
      memories.push_back(&state.memoryOf(region.address));
    state.submitWork(stream, what, [=](std::mt19937_64 &) {
      Footprint touched;
      std::vector<char *> places(regions.size());
      std::vector<Line> lines = linesOf(regions);
      checkOverlap(lines, regions, what);
      // Reads before writes: what the work itself writes was not there.
      for (bool writes : {false, true})
        for (const Line &line : lines) {
          const Region &region = regions[line.region];
          uint64_t bytes = line.end - line.begin;
          if (writes ? !region.isWritten : !region.isRead)
            continue;
          char *place = memories[line.region]->reach(line.begin, bytes, !writes, writes,
                                                     what + ": " + (writes ? "a write" : "a read"));
          touched.add(line.begin, bytes, writes);
          if (line.begin == region.address)
            places[line.region] = place;
        }
      work(places);
      return touched;
    });
  });
}

} // namespace softdevice
