//===- Rounds.cpp - small records in few messages --------------------------===//

#include "Comm/Rounds.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

void Rounds::add(Step step) {
  auto room = [this](int64_t size) {
    size_t begin = scratch.size();
    scratch.resize(begin + (size + 7) / 8 * 8);
    return begin;
  };
  step.out = room(step.round.sends);
  step.in = room(step.round.receives);
  steps.push_back(step);
}

void Rounds::startExchange(const Communicator &members, int64_t recordBytes, char *all) {
  group = &members;
  agrees = false;
  bytes = recordBytes;
  target = all;
  steps.clear();
  scratch.clear();
  int count = members.size(), self = members.self;
  // This rank has the records of places [self, self + known).
  for (int known = 1; known < count; known *= 2) {
    Step step;
    step.records = std::min(known, count - known);
    step.first = self;
    step.taken = (self + known) % count;
    step.round.to = members.ranks[(self + count - known) % count];
    step.round.from = members.ranks[step.taken];
    step.round.sends = step.round.receives = step.records * bytes;
    add(step);
  }
}

void Rounds::startAgreement(const Communicator &members, int64_t *record, const RecordShape &recordShape) {
  group = &members;
  agrees = true;
  shape = recordShape;
  bytes = shape.words() * static_cast<int64_t>(sizeof(int64_t));
  target = reinterpret_cast<char *>(record);
  steps.clear();
  scratch.clear();
  int count = members.size(), self = members.self, power = 1;
  while (power * 2 <= count)
    power *= 2;
  auto addRound = [&](int to, int from, bool merges) {
    Step step;
    step.merges = merges;
    if (to >= 0) {
      step.round.to = members.ranks[to];
      step.round.sends = bytes;
    }
    if (from >= 0) {
      step.round.from = members.ranks[from];
      step.round.receives = bytes;
    }
    add(step);
  };
  if (self >= power) {
    addRound(self - power, -1, false);
    addRound(-1, self - power, false);
    return;
  }
  bool stands = self + power < count; ///< for one beyond the power of two
  if (stands)
    addRound(-1, self + power, true);
  for (int bit = 1; bit < power; bit *= 2)
    addRound(self ^ bit, self ^ bit, true);
  if (stands)
    addRound(self + power, -1, false);
}

std::vector<int> Rounds::peersOf(const Communicator &group) {
  Rounds exchange, agreement;
  exchange.startExchange(group, 0, nullptr);
  agreement.startAgreement(group, nullptr, {});
  std::vector<int> peers;
  for (const Rounds *rounds : {&exchange, &agreement})
    for (const Step &step : rounds->steps)
      for (int peer : {step.round.to, step.round.from})
        if (peer >= 0)
          peers.push_back(peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

const char *Rounds::outgoing(int index) {
  const Step &step = steps[index];
  char *out = scratch.data() + step.out;
  if (agrees) {
    std::memcpy(out, target, bytes);
    return out;
  }
  int before = std::min(step.records, group->size() - step.first); // the rest begins at place 0
  std::memcpy(out, target + step.first * bytes, before * bytes);
  std::memcpy(out + before * bytes, target, (step.records - before) * bytes);
  return out;
}

void Rounds::take(int index) {
  const Step &step = steps[index];
  if (step.round.from < 0)
    return;
  const char *in = incoming(index);
  if (agrees && step.merges) {
    mergeRecords(shape, 0, shape.words(), reinterpret_cast<int64_t *>(target),
                 reinterpret_cast<const int64_t *>(in));
  } else if (agrees) {
    std::memcpy(target, in, bytes);
  } else {
    int before = std::min(step.records, group->size() - step.taken);
    std::memcpy(target + step.taken * bytes, in, before * bytes);
    std::memcpy(target, in + before * bytes, (step.records - before) * bytes);
  }
}

} // namespace dsopt::runtime
