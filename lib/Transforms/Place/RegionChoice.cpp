//===- RegionChoice.cpp - which of several cuts pay together --------------===//

#include "RegionChoice.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <map>
#include <vector>

using namespace dsopt;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
using Candidates = SmallVector<unsigned>; ///< in order
using Paid = llvm::SmallSet<unsigned, 8>; ///< numbers of shared sums

struct Taken {
  Candidates taken;
  int64_t gain = 0;
};

class Solver {
public:
  explicit Solver(const CutProblem &problem) : problem(problem) {}
  Taken solve(ArrayRef<unsigned> open, const Paid &paid);
  /// Whether nothing was left untried.
  bool isExact() const { return known.size() < kMostParts; }

private:
  Taken solvePart(ArrayRef<unsigned> part, const Paid &paid);
  Taken branch(ArrayRef<unsigned> part, const Paid &paid);
  Taken takeGreedily(ArrayRef<unsigned> part, const Paid &paid) const;
  SmallVector<Candidates> split(ArrayRef<unsigned> open, const Paid &paid) const;
  std::vector<int64_t> shapeOf(ArrayRef<unsigned> part, const Paid &paid) const;

  /// What a candidate gains behind those that have paid.
  int64_t gainOf(unsigned candidate, const Paid &paid) const {
    const CutGain &gain = problem.gains[candidate];
    int64_t result = gain.saved - gain.sums;
    for (unsigned sum : gain.shared)
      result -= paid.contains(sum) ? 0 : problem.sharedCosts[sum];
    return result;
  }
  bool excludes(unsigned candidate, unsigned other) const {
    return llvm::is_contained(problem.excludes[candidate], other);
  }

  const CutProblem &problem;
  /// Parts that were solved, by what they are like; candidates are places in the part.
  std::map<std::vector<int64_t>, Taken> known;
  /// Beyond so many different parts the largest gains are taken: a relaxation says what that may have cost.
  static constexpr size_t kMostParts = 5000;
};
} // namespace

/// Parts of which no candidate excludes one of another, or shares a sum with it that is not paid.
SmallVector<Candidates> Solver::split(ArrayRef<unsigned> open, const Paid &paid) const {
  llvm::DenseMap<unsigned, SmallVector<unsigned>> readers; // of sums
  for (unsigned candidate : open)
    for (unsigned sum : problem.gains[candidate].shared)
      if (!paid.contains(sum))
        readers[sum].push_back(candidate);
  SmallVector<Candidates> parts;
  llvm::SmallSet<unsigned, 16> left(llvm::from_range, open);
  for (unsigned first : open) {
    if (!left.erase(first))
      continue;
    Candidates part{first};
    auto add = [&](ArrayRef<unsigned> others) {
      for (unsigned other : others)
        if (left.erase(other))
          part.push_back(other);
    };
    for (size_t at = 0; at < part.size(); ++at) {
      add(problem.excludes[part[at]]);
      for (unsigned sum : problem.gains[part[at]].shared)
        if (!paid.contains(sum))
          add(readers[sum]);
    }
    llvm::sort(part);
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Numbers that are equal for parts that have equal solutions.
std::vector<int64_t> Solver::shapeOf(ArrayRef<unsigned> part, const Paid &paid) const {
  std::vector<int64_t> shape;
  llvm::DenseMap<unsigned, int64_t> places, sums;
  for (auto [place, candidate] : llvm::enumerate(part))
    places[candidate] = place;
  for (unsigned candidate : part) {
    const CutGain &gain = problem.gains[candidate];
    shape.push_back(gain.saved - gain.sums);
    for (unsigned sum : gain.shared)
      if (!paid.contains(sum)) {
        shape.push_back(sums.try_emplace(sum, sums.size()).first->second);
        shape.push_back(problem.sharedCosts[sum]);
      }
    shape.push_back(-1);
    for (unsigned other : problem.excludes[candidate])
      if (auto it = places.find(other); it != places.end())
        shape.push_back(it->second);
    shape.push_back(-1);
  }
  return shape;
}

Taken Solver::takeGreedily(ArrayRef<unsigned> part, const Paid &paid) const {
  Candidates order(part);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    int64_t gain = gainOf(a, paid), other = gainOf(b, paid);
    return gain != other ? gain > other : a < b;
  });
  Taken result;
  Paid spent(paid);
  for (unsigned candidate : order) {
    int64_t gain = gainOf(candidate, spent);
    if (gain <= 0 || llvm::any_of(result.taken, [&](unsigned other) { return excludes(candidate, other); }))
      continue;
    result.taken.push_back(candidate);
    result.gain += gain;
    spent.insert(problem.gains[candidate].shared.begin(), problem.gains[candidate].shared.end());
  }
  return result;
}

/// With and without the candidate that has most to do with others, of several the one in the middle, so that
/// a chain falls into halves.
Taken Solver::branch(ArrayRef<unsigned> part, const Paid &paid) {
  auto links = [&](unsigned candidate) {
    return problem.excludes[candidate].size() + problem.gains[candidate].shared.size();
  };
  auto distance = [&](size_t place) {
    return std::max(place, part.size() / 2) - std::min(place, part.size() / 2);
  };
  size_t middle = 0;
  for (size_t place = 1; place < part.size(); ++place)
    if (links(part[place]) > links(part[middle]) ||
        (links(part[place]) == links(part[middle]) && distance(place) < distance(middle)))
      middle = place;
  unsigned candidate = part[middle];

  Candidates others(part), compatible;
  others.erase(others.begin() + middle);
  llvm::copy_if(others, std::back_inserter(compatible),
                [&](unsigned other) { return !excludes(candidate, other); });
  Paid spent(paid);
  spent.insert(problem.gains[candidate].shared.begin(), problem.gains[candidate].shared.end());
  Taken with = solve(compatible, spent), without = solve(others, paid);
  with.taken.push_back(candidate);
  with.gain += gainOf(candidate, paid);
  return with.gain > without.gain ? with : without;
}

Taken Solver::solvePart(ArrayRef<unsigned> part, const Paid &paid) {
  if (part.size() == 1) {
    int64_t gain = gainOf(part[0], paid);
    return gain > 0 ? Taken{{part[0]}, gain} : Taken();
  }
  std::vector<int64_t> shape = shapeOf(part, paid);
  auto it = known.find(shape);
  if (it == known.end()) {
    if (!isExact())
      return takeGreedily(part, paid);
    Taken found = branch(part, paid);
    for (unsigned &candidate : found.taken)
      candidate = llvm::find(part, candidate) - part.begin();
    it = known.emplace(std::move(shape), std::move(found)).first;
  }
  Taken result = it->second;
  for (unsigned &place : result.taken)
    place = part[place];
  return result;
}

Taken Solver::solve(ArrayRef<unsigned> open, const Paid &paid) {
  Taken all;
  for (const Candidates &part : split(open, paid)) {
    Taken taken = solvePart(part, paid);
    all.gain += taken.gain;
    all.taken.append(taken.taken);
  }
  return all;
}

/// A relaxation: of candidates that all exclude each other one at most is taken; each pays an equal part of a
/// sum that it shares.
static int64_t boundOf(const CutProblem &problem) {
  SmallVector<int64_t> readers(problem.sharedCosts.size());
  for (const CutGain &gain : problem.gains)
    for (unsigned sum : gain.shared)
      ++readers[sum];
  struct Group {
    Candidates members;
    int64_t most = 0;
  };
  SmallVector<Group> groups;
  for (unsigned candidate = 0; candidate < problem.gains.size(); ++candidate) {
    const CutGain &own = problem.gains[candidate];
    int64_t gain = own.saved - own.sums;
    for (unsigned sum : own.shared)
      gain -= problem.sharedCosts[sum] / readers[sum];
    auto fits = [&](const Group &group) {
      return llvm::all_of(group.members, [&](unsigned member) {
        return llvm::is_contained(problem.excludes[candidate], member);
      });
    };
    auto group = problem.excludes[candidate].empty() ? groups.end() : llvm::find_if(groups, fits);
    if (group == groups.end())
      group = groups.insert(groups.end(), Group());
    group->members.push_back(candidate);
    group->most = std::max(group->most, gain);
  }
  int64_t bound = 0;
  for (const Group &group : groups)
    bound += group.most;
  return bound;
}

CutChoice dsopt::chooseCuts(const CutProblem &problem) {
  Candidates all = llvm::to_vector(llvm::seq<unsigned>(0, problem.gains.size()));
  Solver solver(problem);
  Taken best = solver.solve(all, {});
  CutChoice choice;
  choice.taken.assign(problem.gains.size(), false);
  for (unsigned candidate : best.taken)
    choice.taken[candidate] = true;
  choice.gain = best.gain;
  choice.bound = solver.isExact() ? best.gain : std::max(boundOf(problem), best.gain);
  return choice;
}
