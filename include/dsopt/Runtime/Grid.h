//===- Grid.h - ranks by their coordinates along axes -----------*- C++ -*-===//
//
// All ranks of a program lie on a grid whose axes go from the slowest to the fastest: pipeline positions,
// data-parallel ranks (those that experts are alike on, then those that they are spread over), sequence and
// tensor shards. Who talks to whom, and who has which slice, follows from axes and sizes alone: nothing is
// kept for each rank, or each pair of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_GRID_H
#define DSOPT_RUNTIME_GRID_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt {

/// Axes of the grid, from the slowest to the fastest.
enum class Axis { pp, edp, ep, sp, tp };
inline constexpr size_t kAxes = 5;
/// By Axis.
inline constexpr const char *const kAxisNames[kAxes] = {"pp", "edp", "ep", "sp", "tp"};
inline std::optional<Axis> findAxis(std::string_view name) {
  for (size_t axis = 0; axis < kAxes; ++axis)
    if (name == kAxisNames[axis])
      return static_cast<Axis>(axis);
  return std::nullopt;
}

/// An axis, or a factor of it: with `part` Inner its coordinate modulo `count`, so that `count` neighbours
/// are together, with Outer its coordinate divided by it.
struct AxisPart {
  enum Part { Whole, Inner, Outer };
  Axis axis = Axis::pp;
  Part part = Whole;
  int64_t count = 1;

  friend bool operator==(const AxisPart &a, const AxisPart &b) {
    return a.axis == b.axis && a.part == b.part && a.count == b.count;
  }
  friend bool operator!=(const AxisPart &a, const AxisPart &b) { return !(a == b); }
  /// "edp", "edp inner 4" or "edp outer 4".
  friend std::string describe(const AxisPart &part) {
    std::string text = kAxisNames[static_cast<size_t>(part.axis)];
    if (part.part != Whole)
      text += (part.part == Inner ? " inner " : " outer ") + std::to_string(part.count);
    return text;
  }
};

/// Bytes, or elements, that an address steps for each rank along each axis.
struct AxisSteps : std::array<int64_t, kAxes> {};

/// Sizes of axes. A rank's number is that of its coordinates, the last axis counting fastest.
class Grid {
public:
  Grid() { sizes.fill(1); }
  explicit Grid(const std::array<int64_t, kAxes> &sizes) : sizes(sizes) {}

  int64_t size(Axis axis) const { return sizes[static_cast<size_t>(axis)]; }
  /// Ranks in all.
  int64_t size() const { return size(Axis::pp) * perPosition(); }
  /// Ranks of a pipeline position: their numbers follow each other.
  int64_t perPosition() const { return stride(Axis::pp); }
  /// Data-parallel ranks of a position.
  int64_t dataParallel() const { return size(Axis::edp) * size(Axis::ep); }
  /// Ranks of a position that buckets are cut over: each has a slice, and a part of the gradients' sums.
  int64_t slices() const { return dataParallel() * size(Axis::sp); }
  const std::array<int64_t, kAxes> &extents() const { return sizes; }

  /// From a rank to the next one along an axis.
  int64_t stride(Axis axis) const {
    int64_t ranks = 1;
    for (size_t inner = static_cast<size_t>(axis) + 1; inner < kAxes; ++inner)
      ranks *= sizes[inner];
    return ranks;
  }
  int64_t coordinate(int64_t rank, Axis axis) const { return rank / stride(axis) % size(axis); }

  /// The same of a part. A size that `count` does not divide has no parts (`divides`).
  bool divides(const AxisPart &part) const { return part.count > 0 && size(part.axis) % part.count == 0; }
  int64_t size(const AxisPart &part) const {
    return part.part == AxisPart::Whole   ? size(part.axis)
           : part.part == AxisPart::Inner ? part.count
                                          : size(part.axis) / part.count;
  }
  int64_t stride(const AxisPart &part) const {
    return stride(part.axis) * (part.part == AxisPart::Outer ? part.count : 1);
  }
  int64_t coordinate(int64_t rank, const AxisPart &part) const { return rank / stride(part) % size(part); }

  /// Of several (any range of AxisPart), the last counting fastest: how many ranks differ along them alone,
  /// which of these a rank is, and which rank is the one of that number. Of none: one.
  template <typename Parts> int64_t count(const Parts &parts) const {
    int64_t ranks = 1;
    for (const AxisPart &part : parts)
      ranks *= size(part);
    return ranks;
  }
  template <typename Parts> int64_t index(int64_t rank, const Parts &parts) const {
    int64_t index = 0;
    for (const AxisPart &part : parts)
      index = index * size(part) + coordinate(rank, part);
    return index;
  }
  template <typename Parts> int64_t member(int64_t rank, const Parts &parts, int64_t index) const {
    for (size_t i = parts.size(); i-- > 0;) {
      const AxisPart &part = parts[i];
      rank += (index % size(part) - coordinate(rank, part)) * stride(part);
      index /= size(part);
    }
    return rank;
  }
  /// The ranks that differ from one along these alone, itself among them.
  template <typename Parts> std::vector<int> group(int64_t rank, const Parts &parts) const {
    std::vector<int> members(count(parts));
    for (size_t i = 0; i < members.size(); ++i)
      members[i] = static_cast<int>(member(rank, parts, i));
    return members;
  }

  /// How far an address is at most from that of coordinates 0.
  int64_t spread(const AxisSteps &steps) const {
    int64_t spread = 0;
    for (size_t axis = 0; axis < kAxes; ++axis)
      spread += steps[axis] * (sizes[axis] - 1);
    return spread;
  }
  /// The steps of what is `each` for each of the ranks along whole axes, in their order.
  template <typename Parts> AxisSteps stepsAlong(const Parts &parts, int64_t each) const {
    AxisSteps steps{};
    for (size_t i = parts.size(); i-- > 0; each *= size(parts[i]))
      if (size(parts[i]) > 1)
        steps[static_cast<size_t>(parts[i].axis)] = each;
    return steps;
  }

private:
  std::array<int64_t, kAxes> sizes;
};

} // namespace dsopt

#endif // DSOPT_RUNTIME_GRID_H
