//===- Merges.cpp - pairs of tokens become one, best first ----------------===//

#include "Merges.h"

#include <algorithm>
#include <queue>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

WordCuts::WordCuts(const Vocabulary &vocabulary) {
  cuts = vocabulary.find(kSign).has_value();
  for (int32_t id = 0; cuts && id < vocabulary.size(); ++id) {
    const std::string *text = vocabulary.textOf(id);
    for (size_t at = text ? 1 : std::string::npos;
         cuts && at != std::string::npos && (at = text->find(kSign, at)) != text->npos; at += kSign.size())
      cuts = at >= kSign.size() && text->compare(at - kSign.size(), kSign.size(), kSign) == 0;
  }
}

static constexpr uint32_t kNoRank = ~uint32_t(0);

/// Looks through all pairs each time: the quickest way for words.
static void mergeShort(std::vector<int32_t> &symbols, const PairTable &pairs) {
  constexpr size_t kMost = 32;
  struct {
    uint32_t rank;
    int32_t id;
  } next[kMost];
  auto look = [&](size_t i) {
    auto *entry = i + 1 < symbols.size() ? pairs.find(symbols[i], symbols[i + 1]) : nullptr;
    next[i] = {entry ? entry->rank : kNoRank, entry ? entry->id : 0};
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    look(i);
  while (symbols.size() > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < symbols.size(); ++i)
      if (next[i].rank < next[best].rank)
        best = i;
    if (next[best].rank == kNoRank)
      return;
    symbols[best] = next[best].id;
    symbols.erase(symbols.begin() + best + 1);
    std::copy(next + best + 2, next + symbols.size() + 1, next + best + 1);
    look(best);
    if (best)
      look(best - 1);
  }
}

namespace {
struct Candidate {
  uint32_t rank;
  uint32_t place;
  int32_t first, second; ///< as they were
  int32_t id;
  bool operator>(const Candidate &other) const {
    return rank != other.rank ? rank > other.rank : place > other.place;
  }
};
} // namespace

static void mergeLong(std::vector<int32_t> &symbols, const PairTable &pairs) {
  size_t count = symbols.size();
  std::vector<uint32_t> before(count), after(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto look = [&](size_t place) {
    if (after[place] == count)
      return;
    int32_t first = symbols[place], second = symbols[after[place]];
    if (auto *entry = pairs.find(first, second))
      queue.push({entry->rank, static_cast<uint32_t>(place), first, second, entry->id});
  };
  for (size_t i = 0; i < count; ++i) {
    before[i] = static_cast<uint32_t>(i - 1);
    after[i] = static_cast<uint32_t>(i + 1);
  }
  for (size_t i = 0; i < count; ++i)
    look(i);
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    uint32_t second = after[top.place];
    if (symbols[top.place] != top.first || second == count || symbols[second] != top.second)
      continue;
    symbols[top.place] = top.id;
    symbols[second] = -1;
    after[top.place] = after[second];
    if (after[second] < count)
      before[after[second]] = top.place;
    look(top.place);
    if (top.place)
      look(before[top.place]);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), -1), symbols.end());
}

void text::mergePairs(std::vector<int32_t> &symbols, const PairTable &pairs) {
  if (symbols.size() <= 32)
    mergeShort(symbols, pairs);
  else
    mergeLong(symbols, pairs);
}
