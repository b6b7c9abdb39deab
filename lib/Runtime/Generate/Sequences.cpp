//===- Sequences.cpp - sequences on their way ------------------------------===//

#include "Generate/Sequences.h"

#include <algorithm>

using namespace dsopt::runtime;

Sequences::Sequences(std::vector<Sequence> sequences, int64_t slots)
    : all(std::move(sequences)), inSlot(slots, -1) {}

/// The next `count` tokens of a sequence; behind the last one a token is to be chosen.
void Sequences::take(int64_t number, int64_t count, Rows &rows) {
  Sequence &sequence = all[number];
  for (int64_t i = 0; i < count; ++i) {
    rows.tokens.push_back(sequence.tokens[sequence.seen]);
    rows.positions.push_back(sequence.seen++);
    rows.slots.push_back(sequence.slot);
  }
  if (sequence.seen < static_cast<int64_t>(sequence.tokens.size()))
    return;
  rows.picks.push_back(static_cast<int64_t>(rows.tokens.size()) - 1);
  rows.sequences.push_back(number);
}

void Sequences::next(int64_t most, Rows &rows) {
  rows = {};
  for (size_t slot = 0; slot < inSlot.size(); ++slot)
    if (inSlot[slot] < 0 && waiting < size()) {
      all[waiting].slot = static_cast<int64_t>(slot);
      inSlot[slot] = waiting++;
    }
  auto left = [&] { return most - static_cast<int64_t>(rows.tokens.size()); };
  for (bool answers : {true, false})
    for (int64_t number : inSlot) {
      int64_t open = number < 0 ? 0 : static_cast<int64_t>(all[number].tokens.size()) - all[number].seen;
      if (open > 0 && left() > 0 && (all[number].chosen() > 0) == answers)
        take(number, std::min(open, left()), rows);
    }
}

void Sequences::finish(Sequence &sequence) {
  inSlot[sequence.slot] = -1;
  sequence.slot = -1;
  sequence.done = true;
}
