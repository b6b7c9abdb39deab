//===- AddedTokens.cpp - tokens that texts are searched for first ---------===//

#include "AddedTokens.h"
#include "Unicode.h"
#include "Utf8.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

void AddedTokens::add(AddedToken token) { byId[token.id] = std::move(token); }

void AddedTokens::prepare(const Normalizer *normalizer) {
  for (Kind &kind : kinds)
    kind = Kind();
  for (auto &[id, token] : byId) {
    Kind &kind = kinds[token.normalized];
    std::string content = token.content;
    if (token.normalized && normalizer)
      normalizer->apply(content);
    if (content.empty())
      continue;
    kind.begins[static_cast<unsigned char>(content[0])] = true;
    kind.tree.add(content, static_cast<int32_t>(kind.tokens.size()));
    kind.tokens.push_back(&token);
  }
}

const AddedToken *AddedTokens::find(int32_t id) const {
  auto found = byId.find(id);
  return found == byId.end() ? nullptr : &found->second;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  for (auto &[id, token] : byId)
    if (token.content == content)
      return id;
  return std::nullopt;
}

/// Where the character before `at` begins.
static size_t before(std::string_view text, size_t at) {
  do
    --at;
  while (at && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

static bool isBetweenWords(std::string_view text, size_t begin, size_t end) {
  if (begin) {
    size_t at = before(text, begin);
    if (isWord(nextCharacter(text, at)))
      return false;
  }
  return end == text.size() || !isWord(nextCharacter(text, end));
}

std::vector<AddedTokens::Part> AddedTokens::cut(std::string_view text, bool normalized, bool specials) const {
  const Kind &kind = kinds[normalized];
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; !kind.tokens.empty() && at < text.size();) {
    if (!kind.begins[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    int32_t index;
    size_t length = kind.tree.longest(text.substr(at), index);
    if (!length) {
      ++at;
      continue;
    }
    const AddedToken &token = *kind.tokens[index];
    size_t begin = at, end = at + length;
    at = end;
    if ((token.special && !specials) || (token.singleWord && !isBetweenWords(text, begin, end)))
      continue;
    while (token.lstrip && begin > done) {
      size_t last = before(text, begin), next = last;
      if (!isWhiteSpace(nextCharacter(text, next)))
        break;
      begin = last;
    }
    for (size_t next = end; token.rstrip && next < text.size();) {
      if (!isWhiteSpace(nextCharacter(text, next)))
        break;
      end = next;
    }
    if (begin > done)
      parts.push_back({done, begin, nullptr});
    parts.push_back({begin, end, &token});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size())
    parts.push_back({done, text.size(), nullptr});
  return parts;
}
