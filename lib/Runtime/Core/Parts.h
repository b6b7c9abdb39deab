//===- Parts.h - which elements of a parameter a part has -------*- C++ -*-===//
//
// Elements of a part are numbered as the bucket has them, those of a parameter as its file has them. A tile
// has elements that follow each other; a tensor shard has runs, of each rank along tp others. Where shards
// are not equal, the last one's elements from the parameter's end on are padding: zeros that no file has.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PARTS_H
#define DSOPT_LIB_RUNTIME_CORE_PARTS_H

#include "Core/Parameters.h"

#include <algorithm>

namespace dsopt::runtime {

/// This rank's place along tp.
inline int64_t tensorRank(const RankInfo &info) { return info.coordinates[static_cast<size_t>(Axis::tp)]; }

/// Ranks along tp that have other elements by the same part.
inline int64_t countShards(const Program &program, const Part &part) {
  return part.isShard() ? program.grid.size(Axis::tp) : 1;
}

/// The element of the parameter that element `element` of a part is, on ranks that are `shard` along tp.
inline int64_t elementOf(const Part &part, int64_t shard, int64_t element) {
  if (!part.isShard())
    return part.begin + element;
  return part.begin + shard * part.step + element / part.run * part.stride + element % part.run;
}

/// Elements [begin, end) of a part as elements of the parameter that follow each other: body(the first of the
/// parameter's, the first of the part's, how many). Padding is left out.
template <typename Body>
void eachRun(const Parameter &parameter, const Part &part, int64_t shard, int64_t begin, int64_t end,
             Body body) {
  for (int64_t count; begin < end; begin += count) {
    count = part.isShard() ? std::min(part.run - begin % part.run, end - begin) : end - begin;
    int64_t first = elementOf(part, shard, begin), there = std::min(count, elementsOf(parameter) - first);
    if (there > 0)
      body(first, begin, there);
  }
}

/// The values of a part.
class PartValues {
public:
  PartValues(ParameterValues &values, const Part &part, int64_t shard)
      : values(values), part(part), shard(shard) {}
  /// Elements [begin, end) of the part, in the type of the parameter; zeros for padding.
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target);
  int64_t elementAt(int64_t element) const { return elementOf(part, shard, element); }

private:
  ParameterValues &values;
  const Part &part;
  int64_t shard;
  std::vector<char> between; ///< runs with what lies between them
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PARTS_H
