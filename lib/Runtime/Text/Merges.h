//===- Merges.h - pairs of tokens become one, best first --------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_MERGES_H
#define DSOPT_LIB_RUNTIME_TEXT_MERGES_H

#include "Vocabulary.h"

#include <atomic>

namespace dsopt::runtime::text {

/// Merges neighbours in `symbols` until no pair is in `pairs`: the lowest rank first, of equal ranks the
/// leftmost.
void mergePairs(std::vector<int32_t> &symbols, const PairTable &pairs);

/// Where a text can be cut before it is merged: at a sign of blanks behind another character, where no token
/// goes across.
class WordCuts {
public:
  WordCuts() = default;
  /// Of a vocabulary with ▁; cuts nothing where a token has it behind another character.
  explicit WordCuts(const Vocabulary &vocabulary);
  /// Calls `use(word)` for each word of `text`.
  template <typename Use> void forWords(std::string_view text, Use &&use) const {
    size_t begin = 0;
    for (size_t at = 1; cuts && (at = text.find(kSign, at)) != text.npos; at += kSign.size()) {
      if (at >= kSign.size() && text.substr(at - kSign.size(), kSign.size()) == kSign)
        continue;
      use(text.substr(begin, at - begin));
      begin = at;
    }
    use(text.substr(begin));
  }

private:
  static constexpr std::string_view kSign = "\xE2\x96\x81";
  bool cuts = false;
};

/// Ids of words that came lately: one for each of a few thousand hashes.
class WordCache {
public:
  WordCache() : entries(kEntries) {}
  /// Appends the ids of `word`, which `make(ids)` appends where they are not known.
  template <typename Make> void append(std::string_view word, std::vector<int32_t> &ids, Make &&make) const {
    if (word.size() > kLongest || busy.test_and_set(std::memory_order_acquire))
      return make(ids);
    Entry &entry = entries[std::hash<std::string_view>()(word) % kEntries];
    if (entry.word != word || entry.word.empty()) {
      entry.word.clear();
      size_t before = ids.size();
      try {
        make(ids);
      } catch (...) {
        busy.clear(std::memory_order_release);
        throw;
      }
      entry.ids.assign(ids.begin() + before, ids.end());
      entry.word = word;
    } else {
      ids.insert(ids.end(), entry.ids.begin(), entry.ids.end());
    }
    busy.clear(std::memory_order_release);
  }

private:
  struct Entry {
    std::string word;
    std::vector<int32_t> ids;
  };
  static constexpr size_t kEntries = 16384, kLongest = 256;
  mutable std::vector<Entry> entries;
  mutable std::atomic_flag busy = ATOMIC_FLAG_INIT; ///< another thread looks: this one does without
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_MERGES_H
