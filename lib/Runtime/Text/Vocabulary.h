//===- Vocabulary.h - tokens by text and by id ------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_VOCABULARY_H
#define DSOPT_LIB_RUNTIME_TEXT_VOCABULARY_H

#include "JsonFields.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime::text {

/// Ids above this are no vocabulary's.
constexpr int64_t kMostTokens = int64_t(1) << 24;

class Vocabulary {
public:
  /// An Error of status 1 where the text or the id is taken, or the id out of range.
  void add(std::string text, int64_t id, const std::string &where);
  /// {"text": id, ...}
  void read(const Json &json, const std::string &where);

  std::optional<int32_t> find(std::string_view text) const;
  const std::string *textOf(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < present.size() && present[id] ? &texts[id] : nullptr;
  }
  int64_t size() const { return static_cast<int64_t>(texts.size()); }

private:
  bool place(int32_t id);
  std::vector<std::string> texts;
  std::vector<bool> present;
  std::vector<int32_t> slots; ///< ids by hash, -1 where there is none; a power of two
  size_t count = 0;
};

/// From two 32-bit numbers to a rank and an id.
class PairTable {
public:
  struct Entry {
    uint64_t key;
    uint32_t rank;
    int32_t id;
  };
  /// The entry of a pair that is there already is kept if its rank is lower.
  void add(uint32_t first, uint32_t second, uint32_t rank, int32_t id);
  const Entry *find(uint32_t first, uint32_t second) const {
    if (slots.empty())
      return nullptr;
    uint64_t key = uint64_t(first) << 32 | second;
    for (size_t slot = hash(key);; slot = (slot + 1) & (slots.size() - 1)) {
      if (slots[slot].key == key)
        return &slots[slot];
      if (slots[slot].key == kNone)
        return nullptr;
    }
  }

private:
  static constexpr uint64_t kNone = ~uint64_t(0);
  size_t hash(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift; }
  void grow();
  std::vector<Entry> slots;
  int shift = 64;
  size_t count = 0;
};

/// A tree of tokens by their bytes.
class TokenTree {
public:
  void add(std::string_view text, int32_t id);
  bool empty() const { return ends.size() == 1; }
  /// The longest token that begins `text`: its bytes (0: none) and id.
  size_t longest(std::string_view text, int32_t &id) const;
  /// Calls `found(bytes, id)` for each token that begins `text`, shortest first.
  template <typename Found> void prefixes(std::string_view text, Found &&found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      auto *edge = edges.find(node, static_cast<unsigned char>(text[i]));
      if (!edge)
        return;
      node = edge->rank;
      if (ends[node] >= 0)
        found(i + 1, ends[node]);
    }
  }

private:
  PairTable edges; ///< the rank is the node
  std::vector<int32_t> ends = {-1};
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_VOCABULARY_H
