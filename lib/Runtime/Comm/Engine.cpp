//===- Engine.cpp - what all engines share ---------------------------------===//

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <vector>

namespace dsopt::runtime {

TrafficClass trafficClass(const std::string &name) {
  static const char *const names[] = {"all_gather",      "reduce_scatter",    "all_reduce",
                                      "send_recv",       "all_to_all",        "tied",
                                      "tensor_parallel", "sequence_parallel", "control"};
  for (int i = 0; i < kTrafficClasses; ++i)
    if (name == names[i])
      return static_cast<TrafficClass>(i);
  throw Error(StatusInput, "program table: unknown traffic class '" + name + "'");
}

Communicator::Communicator(int number, std::vector<int> members, int rank)
    : number(number), ranks(std::move(members)) {
  auto place = std::find(ranks.begin(), ranks.end(), rank);
  if (place == ranks.end())
    throw Error(StatusInput, "rank " + std::to_string(rank) + " is not a member of communicator " +
                                 std::to_string(number));
  self = static_cast<int>(place - ranks.begin());
}

void mergeRecords(const RecordShape &shape, int64_t begin, int64_t end, int64_t *into, const int64_t *from) {
  int64_t bits = shape.sums, least = bits + shape.bits;
  for (int64_t i = begin; i < end; ++i, ++into, ++from)
    if (i < bits)
      *into = static_cast<int64_t>(static_cast<uint64_t>(*into) + static_cast<uint64_t>(*from));
    else
      *into = i < least ? *into | *from : std::min(*into, *from);
}

void Engine::becomeRank(int rank, int size) {
  thisRank = rank;
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  all = Communicator(0, std::move(ranks), rank);
}

StallClock Engine::stallClock() const {
  constexpr std::chrono::milliseconds kTurn{250};
  constexpr int kTurns = 20;
  return StallClock(stallLimit.count() ? stallLimit + kTurn * std::min(thisRank, kTurns) : stallLimit);
}

void Engine::complete(int slot) {
  WaitsForPeers waits;
  StallClock clock = stallClock();
  while (true) {
    uint32_t seen = waker().count();
    if (poll(slot))
      return beat();
    if (progressed(slot)) {
      beat();
      clock.restart();
      continue;
    }
    waker().sleep(seen);
    if (clock.isOver(StallClock::Clock::now(), [this] { return peerBeats(); })) {
      std::vector<int> ranks = awaited(slot);
      Error error(StatusFailure, "rank " + std::to_string(thisRank) + " has waited " +
                                     std::to_string(stallSeconds()) + " s for " +
                                     (ranks.empty() ? "the other ranks" : describeRanks(ranks)) + " " +
                                     describePlace(static_cast<Place>(pulse().place.load())) +
                                     ", and nothing moved (-stall-timeout)");
      error.rank = ranks.empty() ? -1 : ranks.front();
      throw noticed(error);
    }
  }
}

void Engine::exchange(const void *record, int64_t bytes, void *all) {
  startExchange(kControlSlot, world(), record, bytes, all);
  complete(kControlSlot);
}

void Engine::barrier() {
  char mine = 0;
  std::vector<char> all(size());
  exchange(&mine, 1, all.data());
}

char *allocateArena(int64_t bytes) {
  void *memory = sys::mmap(nullptr, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(StatusFailure,
                "cannot map " + std::to_string(bytes) + " bytes for the arena: " + strerror(errno));
  sys::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<char *>(memory);
}

} // namespace dsopt::runtime
