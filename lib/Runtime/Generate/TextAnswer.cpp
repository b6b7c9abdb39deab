//===- TextAnswer.cpp - an answer as text ----------------------------------===//

#include "Generate/TextAnswer.h"

#include <algorithm>

using namespace dsopt::runtime;

/// How many bytes at the end of a text are the beginning of a stop.
static size_t begunBytes(const std::string &text, const std::string &stop) {
  for (size_t bytes = std::min(text.size(), stop.size()); bytes > 0; --bytes)
    if (text.compare(text.size() - bytes, bytes, stop, 0, bytes) == 0)
      return bytes;
  return 0;
}

std::string TextAnswer::take(bool isLast) {
  size_t first = std::string::npos, begun = 0;
  for (const std::string &stop : stops) {
    first = std::min(first, waiting.find(stop));
    begun = std::max(begun, begunBytes(waiting, stop));
  }
  stopped = first != std::string::npos;
  std::string said = waiting.substr(0, stopped ? first : isLast ? waiting.size() : waiting.size() - begun);
  waiting.erase(0, said.size());
  return said;
}

std::string TextAnswer::add(int64_t token) {
  // An embedding may have more rows than there are tokens: these have no text.
  if (tokenizer.textOf(static_cast<int32_t>(token)))
    waiting += stream.add(static_cast<int32_t>(token));
  return take(/*isLast=*/false);
}

std::string TextAnswer::finish() {
  if (stopped)
    return "";
  waiting += stream.finish();
  return take(/*isLast=*/true);
}
