//===- Simulation.cpp - many ranks' wires in one process -------------------===//

#include "Simulation.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace dsopt::runtime::test {

namespace {
constexpr int64_t kPipeBytes = 64 << 10;
constexpr int64_t kStagingOfRank = 4 << 10;
/// What each rank holds at place i of operation k.
int64_t valueOf(int rank, int64_t operation, int64_t i) { return rank * 7919 + operation * 104729 + i * 13; }
} // namespace

/// One operation of the script, the same on all ranks.
struct Simulation::Work {
  Transfer::Kind kind;
  int group; ///< 0: all, 1: rows, 2: columns
  int64_t words;
};

struct Simulation::Rank {
  int number = 0;
  std::unique_ptr<Wire> wire;
  Communicator groups[4]; ///< all (agreeing), all, row, column
  std::vector<char> staging;
  /// Two queues: of agreements and exchanges, and of all else.
  struct Queue {
    std::vector<Work> script;
    size_t next = 0;
    int flying = 0; ///< slots
    std::vector<int64_t> source, target;
    std::vector<float> floats, sum;
  } queues[2];
  Transfer transfers[Engine::kSlots];
  uint64_t sequences[4] = {};
  std::vector<int> completed;
  enum { Working, Failing, Done, Gone } state = Working;
  int64_t failsAt = 0;
  int64_t bytes = 0;
};

struct Simulation::Pipe {
  int from = 0, to = 0;
  std::string bytes;
  size_t head = 0;
  bool closed = false; ///< behind these bytes
  bool cut = false;    ///< nothing arrives
  bool told = false;   ///< the receiver knows of the end
  Wire::Time slowUntil{}, cutAt{};
  bool active = false, takes = false;
};

const char *Simulation::nameOf(Fault fault) {
  static constexpr const char *kNames[] = {"nothing",    "slow links", "a death",      "a failure",
                                           "a cut link", "a cut host", "a flipped bit"};
  return kNames[fault];
}

Simulation::Simulation(int ranks, uint64_t seed, Fault fault, bool sparse, int operations)
    : size(ranks), fault(fault), random(seed), left(ranks) {
  now += std::chrono::hours(1);
  std::vector<Work> scripts[2];
  int side = 1;
  while (ranks % (side * 2) == 0 && side * 2 * side * 2 <= ranks)
    side *= 2;
  for (int i = 0; i < operations; ++i) {
    bool agrees = i == 0 || pick(2) == 0;
    int64_t words = i == 0 ? kFirstWords : pick(20) ? 1 + pick(40) : 9000;
    scripts[0].push_back({agrees ? Transfer::Agreement : Transfer::Exchange, 0, words});
    static constexpr Transfer::Kind kKinds[] = {Transfer::Gather, Transfer::Reduce, Transfer::AllToAll,
                                                Transfer::Value};
    // Sizes that are not of blocks, larger than the staging, zero.
    scripts[1].push_back({kKinds[pick(4)], 1 + static_cast<int>(pick(3)), pick(10) ? 1 + pick(3000) : 0});
  }
  if (sparse)
    scripts[1].clear();
  pipes.resize(static_cast<size_t>(size) * size);
  for (int r = 0; r < size; ++r) {
    this->ranks.push_back(std::make_unique<Rank>());
    Rank &rank = *this->ranks.back();
    rank.number = r;
    std::vector<int> all(size), row, column;
    std::iota(all.begin(), all.end(), 0);
    for (int i = 0; i < side; ++i) {
      row.push_back(r / side * side + i);
      if (r < side * side)
        column.push_back(r % side + (side - 1 - i) * side);
    }
    rank.groups[0] = Communicator(0, all, r);
    rank.groups[1] = Communicator(1, all, r);
    rank.groups[2] = Communicator(2, row, r);
    rank.groups[3] = r < side * side ? Communicator(3, column, r) : Communicator(3, {r}, r);
    std::vector<bool> linked(size, !sparse);
    if (sparse)
      for (int peer : Rounds::peersOf(rank.groups[0]))
        linked[peer] = true;
    std::vector<std::string> names(size);
    for (int i = 0; i < size; ++i)
      names[i] = "host" + std::to_string(i);
    for (int i = 0; i < size; ++i)
      if (i != r && linked[i]) {
        auto &made = pipes[static_cast<size_t>(r) * size + i] = std::make_unique<Pipe>();
        made->from = r;
        made->to = i;
      }
    rank.wire =
        std::make_unique<Wire>(r, names, linked, now, [&rank](int slot) { rank.completed.push_back(slot); });
    rank.staging.resize(sparse ? 0 : kStagingOfRank * size);
    rank.wire->setStaging(rank.staging.data(), static_cast<int64_t>(rank.staging.size()));
    rank.wire->setPlace(seed % 1000, 0);
    for (int queue : {0, 1})
      rank.queues[queue].script = scripts[queue];
  }
  victim = static_cast<int>(pick(size));
  other = static_cast<int>((victim + 1 + pick(size - 1)) % size);
  strikeAt = 1 + pick(static_cast<int64_t>(size) * operations * 30);
}

Simulation::~Simulation() = default;

int64_t Simulation::framesSent(int rank) const { return ranks[rank]->wire->framesSent(); }
int64_t Simulation::bytesSent(int rank) const { return ranks[rank]->bytes; }

Simulation::Pipe &Simulation::pipe(int from, int to) { return *pipes[static_cast<size_t>(from) * size + to]; }

void Simulation::wrong(const std::string &text) {
  if (problem.empty())
    problem = text;
}

void Simulation::activate(std::vector<int> &list, Pipe &entry, bool Pipe::*flag) {
  if (entry.*flag)
    return;
  entry.*flag = true;
  list.push_back(entry.from * size + entry.to);
}

/// Starts a queue's next operation.
void Simulation::start(Rank &rank, int number) {
  Rank::Queue &queue = rank.queues[number];
  if (queue.flying > 0 || queue.next == queue.script.size() || rank.state != Rank::Working)
    return;
  const Work &work = queue.script[queue.next];
  int64_t operation = static_cast<int64_t>(queue.next) * 2 + number, words = work.words, bytes = words * 8;
  const Communicator &group = rank.groups[work.group];
  int count = group.size(), slot = number == 0 ? 7 : 1;
  Transfer &transfer = rank.transfers[slot];
  transfer.reset(work.kind, &group);
  if (work.kind != Transfer::Value)
    transfer.number = rank.sequences[work.group]++;
  queue.flying = 1;
  auto mine = [&](int64_t i) { return valueOf(rank.number, operation, i); };
  switch (work.kind) {
  case Transfer::Agreement:
    queue.target.resize(words);
    transfer.shape = {words / 3, words / 3, words - words / 3 * 2};
    transfer.record = queue.target.data();
    for (int64_t i = 0; i < words; ++i)
      queue.target[i] = mine(i);
    break;
  case Transfer::Exchange:
    queue.target.assign(words * count, -1);
    for (int64_t i = 0; i < words; ++i)
      queue.target[group.self * words + i] = mine(i);
    transfer.target = reinterpret_cast<char *>(queue.target.data());
    transfer.bytes = bytes;
    break;
  case Transfer::Gather:
  case Transfer::AllToAll: {
    bool parts = work.kind == Transfer::AllToAll;
    queue.target.assign(words * count, -1);
    queue.source.resize(words * count);
    for (int64_t i = 0; i < words * count; ++i)
      queue.source[i] = mine(i);
    std::copy_n(queue.source.data() + (parts ? group.self * words : 0), words,
                queue.target.data() + group.self * words);
    for (int i = 1; i < count; ++i) {
      int member = (group.self + i) % count;
      auto *from = reinterpret_cast<const char *>(queue.source.data() + (parts ? member * words : 0));
      auto *to = reinterpret_cast<char *>(queue.target.data() + member * words);
      transfer.sends.push_back({group.ranks[member], from, nullptr, bytes});
      transfer.receives.push_back({group.ranks[member], nullptr, to, bytes});
    }
    break;
  }
  case Transfer::Reduce:
    queue.floats.resize(words * count);
    queue.sum.assign(words, -1);
    for (int64_t i = 0; i < words * count; ++i)
      queue.floats[i] = static_cast<float>(mine(i) % 1000);
    transfer.source = reinterpret_cast<const char *>(queue.floats.data());
    transfer.target = reinterpret_cast<char *>(queue.sum.data());
    transfer.bytes = words * 4;
    transfer.type = Element::F32;
    break;
  case Transfer::Value: {
    // To the right while receiving from the left.
    int right = group.ranks[(group.self + 1) % count], from = group.ranks[(group.self + count - 1) % count];
    queue.source.resize(words);
    queue.target.assign(words, -1);
    for (int64_t i = 0; i < words; ++i)
      queue.source[i] = mine(i);
    if (count == 1) {
      queue.target = queue.source;
      break;
    }
    transfer.number = static_cast<uint64_t>(operation);
    transfer.sends.push_back({right, reinterpret_cast<const char *>(queue.source.data()), nullptr, bytes});
    Transfer &second = rank.transfers[2];
    second.reset(Transfer::Value, &group);
    second.number = transfer.number;
    second.receives.push_back({from, nullptr, reinterpret_cast<char *>(queue.target.data()), bytes});
    queue.flying = 2;
    rank.wire->start(2, second);
    break;
  }
  }
  rank.wire->start(slot, transfer);
}

/// Looks at what an operation has brought.
void Simulation::finished(Rank &rank, int slot) {
  int number = slot == 7 ? 0 : 1;
  Rank::Queue &queue = rank.queues[number];
  if (--queue.flying > 0)
    return;
  const Work &work = queue.script[queue.next];
  int64_t operation = static_cast<int64_t>(queue.next) * 2 + number, words = work.words;
  const Communicator &group = rank.groups[work.group];
  int count = group.size();
  bool good = true;
  for (int64_t i = 0; i < words; ++i)
    switch (work.kind) {
    case Transfer::Agreement: {
      int64_t expected = valueOf(group.ranks[0], operation, i);
      for (int r = 1; r < count; ++r) {
        int64_t value = valueOf(group.ranks[r], operation, i);
        expected = i < words / 3       ? expected + value
                   : i < words / 3 * 2 ? expected | value
                                       : std::min(expected, value);
      }
      good &= queue.target[i] == expected;
      break;
    }
    case Transfer::Exchange:
    case Transfer::Gather:
      for (int r = 0; r < count; ++r)
        good &= queue.target[r * words + i] == valueOf(group.ranks[r], operation, i);
      break;
    case Transfer::AllToAll:
      for (int r = 0; r < count; ++r)
        good &= queue.target[r * words + i] == valueOf(group.ranks[r], operation, group.self * words + i);
      break;
    case Transfer::Reduce: {
      float expected = 0; // whole numbers: any order gives the same
      for (int r = 0; r < count; ++r)
        expected += static_cast<float>(valueOf(group.ranks[r], operation, group.self * words + i) % 1000);
      good &= queue.sum[i] == expected;
      break;
    }
    case Transfer::Value:
      good &= queue.target[i] == valueOf(group.ranks[(group.self + count - 1) % count], operation, i);
      break;
    }
  if (!good)
    wrong("rank " + std::to_string(rank.number) + " got wrong values from operation " +
          std::to_string(operation) + " (kind " + std::to_string(work.kind) + ")");
  ++queue.next;
}

/// Tcp.cpp connects to rank 0 anew.
void Simulation::decide(Rank &rank) {
  if (!rank.wire->undecided())
    return;
  if (rank.wire->asksForFirst())
    rank.wire->firstIsThere(ranks[0]->state != Rank::Gone &&
                            !(fault == CutHost && (victim == 0 || victim == rank.number)));
  rank.wire->decide(now);
}

/// What a rank does between events.
void Simulation::look(Rank &rank) {
  if (rank.state == Rank::Gone)
    return;
  for (bool again = true; again;) {
    again = false;
    std::vector<int> completed = std::exchange(rank.completed, {});
    for (int slot : completed)
      finished(rank, slot);
    for (int queue : {0, 1}) {
      size_t before = rank.queues[queue].next;
      bool idle = rank.queues[queue].flying == 0;
      start(rank, queue);
      again |= !rank.completed.empty() || (idle && rank.queues[queue].next != before);
    }
  }
  decide(rank);
  if (rank.state == Rank::Working && rank.wire->failure()) {
    ++failed;
    const Wire::Failure &failure = *rank.wire->failure();
    // Who is cut off from the others, or from the only one that is left, cannot know what they say.
    bool apart = fault == CutHost || (fault == CutLink && ranks[0]->state >= Rank::Done);
    (apart && rank.number == victim ? saidByVictim : said) += failure.loud;
    bool known = fault == Death || fault == SelfFailure ? failure.about == victim
                 : fault == CutHost                     ? failure.about == victim || rank.number == victim
                 : fault == CutLink || fault == Flip    ? failure.about == victim || failure.about == other
                                                        : false;
    if (!known)
      wrong("rank " + std::to_string(rank.number) + " blames rank " + std::to_string(failure.about) + ": " +
            failure.text);
    rank.state = Rank::Failing;
    rank.failsAt = events + pick(200);
  }
  if (rank.state == Rank::Working && rank.queues[0].next == rank.queues[0].script.size() &&
      rank.queues[1].next == rank.queues[1].script.size()) {
    rank.wire->end(/*bye=*/true, 0);
    rank.state = Rank::Done;
  }
  if (rank.state == Rank::Failing && events >= rank.failsAt) {
    rank.wire->drop();
    // What was in its memory is somebody else's now.
    for (Rank::Queue &queue : rank.queues) {
      std::fill(queue.source.begin(), queue.source.end(), -77);
      std::fill(queue.target.begin(), queue.target.end(), -77);
      std::fill(queue.floats.begin(), queue.floats.end(), -77.0f);
    }
    rank.wire->end(/*bye=*/false, StatusFailure);
    rank.state = Rank::Done;
  }
  for (int peer = rank.wire->nextReady(); peer >= 0; peer = rank.wire->nextReady())
    activate(outs, pipe(rank.number, peer), &Pipe::active);
  if (rank.state != Rank::Done)
    return;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank.number && pipes[static_cast<size_t>(rank.number) * size + peer] &&
        !rank.wire->flushed(peer) && !pipe(rank.number, peer).cut)
      return;
  leave(rank);
}

/// The process ends: its connections close behind what it has sent.
void Simulation::leave(Rank &rank) {
  rank.state = Rank::Gone;
  --left;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank.number || !pipes[static_cast<size_t>(rank.number) * size + peer])
      continue;
    Pipe &out = pipe(rank.number, peer);
    out.closed = true;
    activate(ins, out, &Pipe::takes);
    pipe(peer, rank.number).bytes.clear();
  }
}

/// Takes bytes from a rank onto their way; false if there are none.
bool Simulation::moveOut() {
  while (!outs.empty()) {
    size_t at = static_cast<size_t>(pick(static_cast<int64_t>(outs.size())));
    Pipe &way = *pipes[outs[at]];
    Rank &rank = *ranks[way.from];
    Wire::Bytes bytes;
    if (rank.state != Rank::Gone && rank.wire->isOpen(way.to))
      bytes = rank.wire->outgoing(way.to);
    int64_t room = kPipeBytes - static_cast<int64_t>(way.bytes.size() - way.head);
    if (bytes.size() == 0 || (room <= 0 && !way.cut)) {
      way.active = false;
      outs[at] = outs.back();
      outs.pop_back();
      continue; // a receiver that has taken some activates it again
    }
    if (way.cut) { // the system's buffer fills, nothing arrives
      way.active = false;
      outs[at] = outs.back();
      outs.pop_back();
      continue;
    }
    int64_t some = std::min(room, bytes.size());
    some = pick(4) ? some : 1 + pick(std::min<int64_t>(some, 200));
    int64_t ofHead = std::min(some, bytes.headBytes);
    way.bytes.append(bytes.head, ofHead);
    way.bytes.append(bytes.body ? bytes.body : "", some - ofHead);
    rank.bytes += some;
    rank.wire->sent(way.to, some);
    activate(ins, way, &Pipe::takes);
    look(rank);
    return true;
  }
  return false;
}

/// Brings bytes to a rank; false if there are none that may arrive now.
bool Simulation::moveIn() {
  for (size_t tries = ins.size(); tries > 0; --tries) {
    size_t at = static_cast<size_t>(pick(static_cast<int64_t>(ins.size())));
    Pipe &way = *pipes[ins[at]];
    Rank &rank = *ranks[way.to];
    int64_t there = static_cast<int64_t>(way.bytes.size() - way.head);
    auto done = [&] {
      way.takes = false;
      ins[at] = ins.back();
      ins.pop_back();
    };
    if (way.cut || rank.state == Rank::Gone || !rank.wire->isOpen(way.from)) {
      done();
      if (ins.empty())
        return false;
      continue;
    }
    if (way.slowUntil > now)
      continue;
    if (there == 0) {
      done();
      if (way.closed && !way.told) {
        way.told = true;
        rank.wire->closed(way.from, "it closed the connection");
        look(rank);
        return true;
      }
      if (ins.empty())
        return false;
      continue;
    }
    int64_t some = pick(4) ? there : 1 + pick(std::min<int64_t>(there, 200));
    char *data = way.bytes.data() + way.head;
    if (fault == Flip && events >= strikeAt && !struck) {
      struck = true;
      victim = way.from;
      other = way.to;
      data[pick(some)] ^= static_cast<char>(1 << pick(8));
    }
    rank.wire->feed(way.from, data, some, now);
    way.head += some;
    if (way.head == way.bytes.size()) {
      way.bytes.clear();
      way.head = 0;
    }
    activate(outs, pipe(way.from, way.to), &Pipe::active);
    look(rank);
    return true;
  }
  return false;
}

void Simulation::strike() {
  struck = true;
  Rank &rank = *ranks[victim];
  auto cut = [&](int from, int to) {
    if (!pipes[static_cast<size_t>(from) * size + to])
      return;
    Pipe &way = pipe(from, to);
    way.cut = true;
    way.cutAt = now;
    way.bytes.clear();
    way.head = 0;
  };
  switch (fault) {
  case Death:
    if (rank.state != Rank::Gone)
      leave(rank);
    break;
  case SelfFailure:
    if (rank.state == Rank::Working) {
      rank.state = Rank::Failing;
      rank.failsAt = events;
      look(rank);
    }
    break;
  case CutLink:
    cut(victim, other);
    cut(other, victim);
    break;
  case CutHost:
    for (int peer = 0; peer < size; ++peer)
      if (peer != victim) {
        cut(victim, peer);
        cut(peer, victim);
      }
    break;
  case Delay:
    for (auto &way : pipes)
      if (way && pick(4) == 0)
        way->slowUntil = now + std::chrono::milliseconds(pick(60000));
    break;
  default:
    break;
  }
}

void Simulation::advanceClock(std::chrono::milliseconds time) {
  now += time;
  for (auto &rank : ranks)
    if (rank->state != Rank::Gone) {
      rank->wire->tick(now);
      look(*rank);
    }
  // Tcp.cpp finds in the kernel that nothing is acknowledged.
  for (auto &way : pipes)
    if (way && way->cut && !way->told && now - way->cutAt > std::chrono::seconds(6)) {
      way->told = true;
      Rank &rank = *ranks[way->to];
      if (rank.state != Rank::Gone && rank.wire->isOpen(way->from)) {
        rank.wire->closed(way->from, "its host does not answer");
        look(rank);
      }
    }
}

std::string Simulation::run() {
  for (auto &rank : ranks)
    look(*rank);
  int idle = 0;
  while (left > 0 && problem.empty()) {
    ++events;
    if (events == strikeAt && fault != Flip && fault != None)
      strike();
    bool first = pick(2) == 0;
    bool moved = first ? moveOut() || moveIn() : moveIn() || moveOut();
    if (moved) {
      idle = 0;
      if (events % 1000 == 0)
        now += std::chrono::milliseconds(1);
      continue;
    }
    // Heartbeats alone keep nobody from being stuck.
    advanceClock(std::chrono::milliseconds(500));
    if (++idle > 1000 || now.time_since_epoch() > std::chrono::hours(3)) {
      std::string stuck;
      for (auto &rank : ranks)
        if (rank->state != Rank::Gone)
          stuck += " " + std::to_string(rank->number);
      wrong("ranks that never end:" + stuck);
    }
  }
  bool mayFail = fault != None && fault != Delay;
  if (!mayFail && failed > 0)
    wrong("a failure without a fault");
  // Who fails by itself says so.
  bool unsaid = fault == SelfFailure || failed == 0;
  if (problem.empty() && (said > 1 || (said + saidByVictim > 0) == unsaid))
    wrong("the failure is said " + std::to_string(said) + " times");
  return problem;
}

} // namespace dsopt::runtime::test
