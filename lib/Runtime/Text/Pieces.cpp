//===- Pieces.cpp - a text on its way to tokens ---------------------------===//

#include "Pieces.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

Pieces::Pieces(std::string given, bool startsText) : text(std::move(given)) {
  if (!text.empty())
    pieces.push_back({0, text.size(), startsText});
}

namespace {
struct Part {
  size_t begin, end;
  bool isMatch;
};
} // namespace

/// Joins parts as the behavior has it; those that stay are left in `parts`.
static void join(std::vector<Part> &parts, SplitBehavior behavior) {
  size_t count = 0;
  switch (behavior) {
  case SplitBehavior::Isolated:
    return;
  case SplitBehavior::Removed:
    parts.erase(std::remove_if(parts.begin(), parts.end(), [](const Part &part) { return part.isMatch; }),
                parts.end());
    return;
  case SplitBehavior::Contiguous:
    for (const Part &part : parts)
      if (count && parts[count - 1].isMatch == part.isMatch)
        parts[count - 1].end = part.end;
      else
        parts[count++] = part;
    break;
  case SplitBehavior::MergedWithPrevious: {
    bool wasMatch = false;
    for (Part part : parts) {
      if (count && part.isMatch && !wasMatch)
        parts[count - 1].end = part.end;
      else
        parts[count++] = part;
      wasMatch = part.isMatch;
    }
    break;
  }
  case SplitBehavior::MergedWithNext: {
    bool wasMatch = false;
    std::reverse(parts.begin(), parts.end());
    for (Part part : parts) {
      if (count && part.isMatch && !wasMatch)
        parts[count - 1].begin = part.begin;
      else
        parts[count++] = part;
      wasMatch = part.isMatch;
    }
    parts.resize(count);
    std::reverse(parts.begin(), parts.end());
    return;
  }
  }
  parts.resize(count);
}

void Pieces::split(const Find &find, SplitBehavior behavior, bool invert) {
  std::vector<Piece> result;
  result.reserve(pieces.size() * 2);
  std::vector<Part> parts;
  for (const Piece &piece : pieces) {
    std::string_view whole = textOf(piece);
    parts.clear();
    size_t from = 0, done = 0, begin, end;
    while (from <= whole.size() && find(whole, from, begin, end)) {
      if (done < begin)
        parts.push_back({done, begin, invert});
      if (begin < end)
        parts.push_back({begin, end, !invert});
      done = end;
      // What has no characters is found once at each place.
      from = begin < end ? end : end < whole.size() ? end + lengthOf(whole[end]) : end + 1;
    }
    if (done < whole.size())
      parts.push_back({done, whole.size(), invert});
    join(parts, behavior);
    for (const Part &part : parts)
      result.push_back({piece.begin + part.begin, piece.begin + part.end, piece.startsText && !part.begin});
  }
  pieces = std::move(result);
}

void Pieces::split(const Regex &regex, SplitBehavior behavior, bool invert) {
  Regex::Matcher matcher(regex);
  split([&](std::string_view whole, size_t from, size_t &begin,
            size_t &end) { return matcher.find(whole, from, begin, end); },
        behavior, invert);
}

void Pieces::split(bool (*isOne)(char32_t), SplitBehavior behavior) {
  split(
      [&](std::string_view whole, size_t from, size_t &begin, size_t &end) {
        for (size_t at = from; at < whole.size();) {
          begin = at;
          if (isOne(nextCharacter(whole, at))) {
            end = at;
            return true;
          }
        }
        return false;
      },
      behavior);
}

void Pieces::split(const std::string &delimiter, SplitBehavior behavior, bool invert) {
  split(
      [&](std::string_view whole, size_t from, size_t &begin, size_t &end) {
        begin = delimiter.empty() ? whole.npos : whole.find(delimiter, from);
        end = begin + delimiter.size();
        return begin != whole.npos;
      },
      behavior, invert);
}

void Pieces::rewrite(const std::function<void(std::string_view, bool, std::string &)> &write) {
  std::string result;
  result.reserve(text.size() * 2);
  for (Piece &piece : pieces) {
    size_t begin = result.size();
    write(textOf(piece), piece.startsText, result);
    piece.begin = begin;
    piece.end = result.size();
  }
  text = std::move(result);
}

SplitBehavior text::splitBehavior(const std::string &name, const std::string &where) {
  static const std::pair<const char *, SplitBehavior> names[] = {
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  for (auto &[known, behavior] : names)
    if (name == known)
      return behavior;
  throw Error(StatusInput,
              where + ": behavior got " + name +
                  ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}
