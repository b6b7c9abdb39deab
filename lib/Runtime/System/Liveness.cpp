//===- Liveness.cpp - whether a rank gets on -------------------------------===//

#include "dsopt/Runtime/Liveness.h"

#include <algorithm>

namespace dsopt::runtime {

static Pulse own;
std::atomic<Pulse *> thisPulse{&own};

void setPulse(Pulse *pulse) { thisPulse = pulse ? pulse : &own; }

const char *describePlace(Place place) {
  switch (place) {
  case Place::Starting:
    return "before its first step";
  case Place::Loading:
    return "while it loads its parameters";
  case Place::Training:
    return "";
  case Place::Evaluating:
    return "while it evaluates";
  case Place::Saving:
    return "while it saves";
  case Place::AwaitingData:
    return "while it waits for data";
  case Place::Finishing:
    return "after its last step";
  case Place::Done:
    return "when it was done";
  }
  return "";
}

bool StallClock::isOver(Clock::time_point now, uint64_t count) {
  if (!started || count != seen) {
    started = true;
    seen = count;
    still = {};
  } else {
    still += std::min<Clock::duration>(now - last, std::chrono::seconds(1));
  }
  last = now;
  return runs() && still >= limit;
}

std::string describeRanks(const std::vector<int> &ranks) {
  constexpr size_t kShown = 8;
  if (ranks.size() == 1)
    return "rank " + std::to_string(ranks.front());
  std::string text = "ranks";
  size_t shown = ranks.size() > kShown ? kShown / 2 : ranks.size();
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0 ? " " : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return shown == ranks.size() ? text : text + " and " + std::to_string(ranks.size() - shown) + " more";
}

} // namespace dsopt::runtime
