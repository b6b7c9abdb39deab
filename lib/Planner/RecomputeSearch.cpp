//===- RecomputeSearch.cpp - how much has to run again --------------------===//

#include "dsopt/Planner/RecomputeSearch.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Planner/FewMicroBatches.h"

#include <map>

using namespace mlir;
using namespace dsopt;

static int64_t gatherWindow(ModuleOp module) {
  return std::max<int64_t>(options::gather_window(module).value_or(0), 1);
}

FailureOr<Planner::Plan> RecomputeSearch::plan(ModuleOp module, const Places &places, int64_t enough) const {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(apply(*copy, places)))
    return failure();
  FailureOr<Planner> planner = Planner::create(*copy);
  if (failed(planner))
    return failure();
  return planner->plan({options::micro_batches(module).value_or(1), gatherWindow(module), enough});
}

FailureOr<RecomputeSearch::Bytes> RecomputeSearch::estimate(ModuleOp module, const Places &places,
                                                            int64_t enough) const {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(apply(*copy, places)))
    return failure();
  FailureOr<Planner> planner = Planner::create(*copy);
  if (failed(planner))
    return failure();
  int64_t all = options::micro_batches(module).value_or(1);
  auto [few, window] = FewMicroBatches(module, all).of(gatherWindow(module));
  int64_t more = std::min(few + window, all);
  FailureOr<Planner::Plan> one = planner->plan({few, window, enough});
  if (failed(one))
    return failure();
  // What is too much without them needs no further ones.
  if (more == few || llvm::all_of(one->positionBytes, [&](int64_t bytes) { return bytes > enough; }))
    return one->positionBytes;
  FailureOr<Planner::Plan> other = planner->plan({more, window, enough});
  if (failed(other))
    return failure();
  Bytes bytes = other->positionBytes;
  for (auto [stage, taken] : llvm::enumerate(bytes))
    taken += std::max<int64_t>(taken - one->positionBytes[stage], 0) * (all - more) / (more - few);
  return bytes;
}

namespace {
/// The search of one stage, over what is known of it.
struct StageSearch {
  const RecomputeSearch &scale;
  size_t stage;
  int64_t budget;
  bool halves; ///< asks for few places, as if more computed again were always fewer bytes
  std::map<int64_t, int64_t> bytes; ///< by place
  int64_t place = 0;                ///< the next to ask for, or the answer

  /// Whether the place is the answer.
  bool decide();

private:
  bool isKnown(int64_t asked) {
    place = asked;
    return bytes.count(asked);
  }
  bool fits(int64_t asked) const { return bytes.at(asked) <= budget; }
};
} // namespace

bool StageSearch::decide() {
  if (!isKnown(0))
    return false;
  if (fits(0))
    return true;
  // The first step of the scale that fits: more computed again is not always fewer bytes.
  int64_t high = 1, least = 0;
  if (halves) {
    int64_t low = 1;
    high = RecomputeSearch::kSteps;
    while (low < high) {
      int64_t middle = (low + high) / 2, asked = scale.at(stage, middle);
      if (!isKnown(asked))
        return false;
      (fits(asked) ? high : low) = fits(asked) ? middle : middle + 1;
    }
    if (!isKnown(scale.at(stage, high)))
      return false;
    high = fits(scale.at(stage, high)) ? high : 1;
  }
  for (; high <= RecomputeSearch::kSteps; ++high) {
    int64_t asked = scale.at(stage, high);
    if (!isKnown(asked))
      return false;
    if (fits(asked))
      break;
    least = bytes[asked] < bytes[least] ? asked : least;
  }
  if (high > RecomputeSearch::kSteps) {
    place = least;
    return true;
  }
  int64_t first = scale.at(stage, high - 1) + 1, end = scale.at(stage, high);
  while (first < end) {
    int64_t middle = first + (end - first) / 2;
    if (!isKnown(middle))
      return false;
    (fits(middle) ? end : first) = fits(middle) ? middle : middle + 1;
  }
  place = end;
  return true;
}

FailureOr<RecomputeSearch::Places>
RecomputeSearch::search(int64_t budget, bool halves,
                        llvm::function_ref<FailureOr<Bytes>(const Places &)> bytesOf) const {
  std::vector<StageSearch> searches;
  for (size_t stage = 0; stage < lasts.size(); ++stage)
    searches.push_back({*this, stage, budget, halves, {}, 0});
  // All stages at once: none has bytes in another's memory.
  while (true) {
    bool decided = true;
    Places places;
    for (StageSearch &search : searches) {
      decided &= search.decide();
      places.push_back(search.place);
    }
    if (decided)
      return places;
    FailureOr<Bytes> bytes = bytesOf(places);
    if (failed(bytes))
      return failure();
    for (auto [stage, search] : llvm::enumerate(searches))
      search.bytes[places[stage]] = (*bytes)[stage];
  }
}

FailureOr<RecomputeSearch::Places> RecomputeSearch::fewest(ModuleOp module, int64_t budget) const {
  auto exact = [&](const Places &places) -> FailureOr<Bytes> {
    FailureOr<Planner::Plan> found = plan(module, places, budget);
    if (failed(found))
      return failure();
    return found->positionBytes;
  };
  auto fits = [](const Bytes &taken, int64_t budget) {
    return llvm::all_of(taken, [&](int64_t bytes) { return bytes <= budget; });
  };
  if (FewMicroBatches(module, options::micro_batches(module).value_or(1)).isLong(module)) {
    // Estimates, and so not to the last byte.
    int64_t sure = budget / 100 * 98;
    auto estimated = [&](const Places &asked) { return estimate(module, asked, sure); };
    FailureOr<Places> places = search(sure, /*halves=*/true, estimated);
    if (failed(places))
      return failure();
    FailureOr<Bytes> taken = estimated(*places);
    if (failed(taken))
      return failure();
    if (!fits(*taken, sure))
      return places;
    taken = exact(*places);
    if (failed(taken))
      return failure();
    if (fits(*taken, budget))
      return places;
  }
  return search(budget, /*halves=*/false, exact);
}
