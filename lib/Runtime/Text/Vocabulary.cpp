//===- Vocabulary.cpp - tokens by text and by id --------------------------===//

#include "Vocabulary.h"
#include "dsopt/Runtime/Error.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

bool Vocabulary::place(int32_t id) {
  size_t mask = slots.size() - 1, slot = std::hash<std::string_view>()(texts[id]) & mask;
  while (slots[slot] >= 0) {
    if (texts[slots[slot]] == texts[id])
      return false;
    slot = (slot + 1) & mask;
  }
  slots[slot] = id;
  return true;
}

void Vocabulary::add(std::string text, int64_t id, const std::string &where) {
  if (id < 0 || id >= kMostTokens)
    throw Error(StatusInput, where + ": the id of " + shortly(text) + " is " + std::to_string(id) +
                                 ", expected 0 to " + std::to_string(kMostTokens - 1));
  if (textOf(static_cast<int32_t>(id)))
    throw Error(StatusInput, where + ": " + shortly(texts[id]) + " and " + shortly(text) + " have the id " +
                                 std::to_string(id));
  if (id >= size()) {
    texts.resize(id + 1);
    present.resize(id + 1);
  }
  texts[id] = std::move(text);
  present[id] = true;
  if (++count * 2 > slots.size()) {
    slots.assign(std::max<size_t>(64, slots.size() * 4), -1);
    for (size_t other = 0; other < texts.size(); ++other)
      if (present[other] && other != static_cast<size_t>(id))
        place(static_cast<int32_t>(other));
  }
  if (!place(static_cast<int32_t>(id)))
    throw Error(StatusInput, where + ": " + shortly(texts[id]) + " has two ids, " +
                                 std::to_string(*find(texts[id])) + " and " + std::to_string(id));
}

void Vocabulary::read(const Json &json, const std::string &where) {
  if (!json.is_object())
    throw Error(StatusInput, where + " got " + shortly(json) + ", expected an object of tokens");
  texts.reserve(json.size());
  for (const auto &[text, id] : json.items()) {
    if (!id.is_number_integer())
      throw Error(StatusInput, where + ": the id of " + shortly(text) + " is " + shortly(id));
    add(text, id.get<int64_t>(), where);
  }
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  if (slots.empty())
    return std::nullopt;
  size_t mask = slots.size() - 1;
  for (size_t slot = std::hash<std::string_view>()(text) & mask; slots[slot] >= 0; slot = (slot + 1) & mask)
    if (texts[slots[slot]] == text)
      return slots[slot];
  return std::nullopt;
}

void PairTable::add(uint32_t first, uint32_t second, uint32_t rank, int32_t id) {
  if ((count + 1) * 2 > slots.size())
    grow();
  uint64_t key = uint64_t(first) << 32 | second;
  for (size_t slot = hash(key);; slot = (slot + 1) & (slots.size() - 1)) {
    if (slots[slot].key == key) {
      if (rank < slots[slot].rank)
        slots[slot] = {key, rank, id};
      return;
    }
    if (slots[slot].key == kNone) {
      slots[slot] = {key, rank, id};
      ++count;
      return;
    }
  }
}

void PairTable::grow() {
  std::vector<Entry> old = std::move(slots);
  slots.assign(std::max<size_t>(64, old.size() * 2), Entry{kNone, 0, 0});
  shift = 64 - __builtin_ctzll(slots.size());
  for (const Entry &entry : old) {
    if (entry.key == kNone)
      continue;
    size_t slot = hash(entry.key);
    while (slots[slot].key != kNone)
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = entry;
  }
}

void TokenTree::add(std::string_view text, int32_t id) {
  uint32_t node = 0;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (auto *edge = edges.find(node, byte)) {
      node = edge->rank;
      continue;
    }
    edges.add(node, byte, static_cast<uint32_t>(ends.size()), 0);
    node = static_cast<uint32_t>(ends.size());
    ends.push_back(-1);
  }
  if (!text.empty() && ends[node] < 0)
    ends[node] = id;
}

size_t TokenTree::longest(std::string_view text, int32_t &id) const {
  size_t best = 0;
  prefixes(text, [&](size_t bytes, int32_t found) {
    best = bytes;
    id = found;
  });
  return best;
}
