//===- WorldEngine.cpp - shared memory within a host, TCP between hosts ----===//
//
// Sends each operation the nearest way: through shared memory if all who take part
// are on this host, else over TCP. The choice changes no bit. Gathers and reductions
// over several hosts go in two levels: one rank of a host fetches what the others read
// in its memory; and where a host's members are a subtree of the canonical
// tree, their sum is made there and crosses the wire once.
//
//===----------------------------------------------------------------------===//

#include "Comm/WorldEngine.h"
#include "Comm/Hosts.h"
#include "Comm/Neighbours.h"
#include "Comm/Tcp.h"
#include "Core/Futex.h"
#include "Core/ThreadPool.h"
#include "Kernels/CPU/Elementwise.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {
namespace {

constexpr int kSpins = 500;

class WorldEngine final : public Engine {
public:
  WorldEngine(int rank, Met met, std::shared_ptr<SharedGroup> group)
      : memory(std::move(group)),
        shared(memory ? static_cast<Neighbours *>(memory->join(rank).release()) : nullptr),
        hostNames(std::move(met.hosts)), known(kCommunicators) {
    becomeRank(rank, static_cast<int>(hostNames.size()));
    oneHost = hostsOf(world()).local;
    tcp = std::make_unique<TcpLinks>(rank, std::move(met), [this] { waker().ring(); });
  }

  const char *name() const override {
    return oneHost ? "shared memory" : shared ? "shared memory and TCP" : "TCP";
  }
  void setPool(ThreadPool *newPool) override {
    pool = newPool;
    if (shared)
      shared->setPool(newPool);
  }
  void setStaging(char *memory, int64_t bytes) override {
    staging = memory;
    stagingBytes = bytes;
    tcp->setStaging(memory, bytes);
  }
  bool needsStaging() const override { return !oneHost; }

  bool poll(int slot) override {
    tcp->check();
    moved[slot] = false;
    Flight &flight = flights[slot];
    switch (flight.way) {
    case Way::Memory: {
      bool complete = shared->poll(slot);
      moved[slot] = shared->progressed(slot);
      return complete;
    }
    case Way::Wire:
      return tcp->poll(slot);
    case Way::WideGather:
      return pollGather(flight, slot);
    case Way::WideReduce:
      return pollReduce(flight, slot);
    }
    return true;
  }

  Waker &waker() override { return shared ? shared->waker() : own; }
  void setSpinning(bool spins) override {
    if (shared)
      shared->setSpinning(spins);
    else
      own.setSpins(spins ? kSpins : 0);
  }
  std::vector<int> awaited(int slot) const override {
    return shared && flights[slot].way == Way::Memory ? shared->awaited(slot) : std::vector<int>();
  }
  /// Ranks of other hosts tell where they are: what changes has got on.
  uint64_t peerBeats() const override {
    uint64_t beats = shared ? shared->peerBeats() : 0;
    for (int peer = 0; peer < size(); ++peer)
      if (!isHere(peer)) {
        Whereabouts there = tcp->whereabouts(peer);
        beats += static_cast<uint64_t>(there.step + 1) * 1000003 + static_cast<uint64_t>(there.action + 1);
      }
    return beats;
  }

  Whereabouts whereabouts(int rank) const override {
    return shared && isHere(rank) ? shared->whereabouts(rank) : tcp->whereabouts(rank);
  }
  void publish(int64_t step, int64_t action) override {
    tcp->publish(step, action);
    if (shared)
      shared->publish(step, action);
  }
  void abandon() override { tcp->abandon(); }
  Error noticed(const Error &error) override { return tcp->noticed(error); }
  void fail(int status, bool quiet) override { tcp->fail(status, quiet); }
  void leave(int status) override { tcp->fail(status, /*quiet=*/false); }
  void finish() override {
    publish(-1, -1);
    tcp->finish();
  }

private:
  enum class Way { Memory, Wire, WideGather, WideReduce };
  /// What flies in a slot.
  struct Flight {
    Way way = Way::Wire;
    const Communicator *group = nullptr;
    const Hosts *hosts = nullptr;
    char *target = nullptr;
    int64_t bytes = 0; ///< of each member's part
    int stage = 0;
    std::vector<char> read; ///< neighbours
    int left = 0;           ///< of these
    // Reductions.
    std::vector<const char *> whole; ///< of the neighbours
    std::vector<const void *> parts;
    Element type = Element::F32;
    bool accumulate = false;
    int64_t offset = 0, chunk = 0, size = 0;
  };

  void beginGather(int slot, const Communicator &group, const void *slice, void *target,
                   int64_t bytes) override {
    const Hosts &hosts = hostsOf(group);
    if (take(slot, group, hosts, target, bytes))
      return shared->startGather(slot, group, slice, target, bytes, TrafficClass::AllGather);
    auto *from = static_cast<const char *>(slice);
    char *to = static_cast<char *>(target);
    copy(to + group.self * bytes, from, bytes);
    // What a host needs of another one comes to its members in turn.
    Transfer &transfer = tcp->prepare(slot, Transfer::Gather, &group);
    for (int i = 1; i < hosts.count(); ++i) {
      int host = (hosts.own + i) % hosts.count();
      transfer.sends.push_back({group.ranks[hosts.fetcher(group.self, host)], from, nullptr, bytes});
    }
    if (!hosts.gathers)
      transfer.sends.clear();
    for (int i = 1; i < group.size(); ++i) {
      int member = (group.self + i) % group.size();
      if (!hosts.gathers)
        transfer.sends.push_back({group.ranks[member], from, nullptr, bytes});
      if (hosts.hostOf[member] != hosts.own && hosts.fetcher(member, hosts.own) == group.self)
        transfer.receives.push_back({group.ranks[member], nullptr, to + member * bytes, bytes});
    }
    tcp->start(slot);
    if (hosts.neighbours.size() == 1)
      return;
    flights[slot].way = Way::WideGather;
    show(slot, slice, bytes);
  }

  void beginReduce(int slot, const Communicator &group, Element type, const void *whole, void *target,
                   int64_t elements, bool accumulate) override {
    const Hosts &hosts = hostsOf(group);
    int64_t bytes = elements * bytesOf(type);
    if (take(slot, group, hosts, target, bytes))
      return shared->startReduce(slot, group, type, whole, target, elements, accumulate);
    Flight &flight = flights[slot];
    flight.chunk = hosts.subtrees ? stagingBytes / (2 * hosts.count() - 1) / 64 * 64 : 0;
    if (flight.chunk > 0 && shared) {
      flight.way = Way::WideReduce;
      flight.type = type;
      flight.accumulate = accumulate;
      flight.offset = 0;
      flight.whole.assign(hosts.neighbours.size(), nullptr);
      return show(slot, whole, bytes * group.size());
    }
    Transfer &transfer = tcp->prepare(slot, Transfer::Reduce, &group);
    transfer.source = static_cast<const char *>(whole);
    transfer.target = static_cast<char *>(target);
    transfer.bytes = bytes;
    transfer.type = type;
    transfer.accumulate = accumulate;
    tcp->start(slot);
  }

  void beginAllToAll(int slot, const Communicator &group, const void *source, void *target,
                     int64_t bytes) override {
    if (take(slot, group, hostsOf(group), target, bytes))
      return shared->startAllToAll(slot, group, source, target, bytes);
    auto *from = static_cast<const char *>(source);
    char *to = static_cast<char *>(target);
    copy(to + group.self * bytes, from + group.self * bytes, bytes);
    Transfer &transfer = tcp->prepare(slot, Transfer::AllToAll, &group);
    for (int i = 1; i < group.size(); ++i) {
      int member = (group.self + i) % group.size();
      transfer.sends.push_back({group.ranks[member], from + member * bytes, nullptr, bytes});
      transfer.receives.push_back({group.ranks[member], nullptr, to + member * bytes, bytes});
    }
    tcp->start(slot);
  }

  void beginShift(int slot, const Communicator &group, const void *source, void *target,
                  int64_t bytes) override {
    if (take(slot, group, hostsOf(group), target, bytes))
      return shared->startShift(slot, group, source, target, bytes, TrafficClass::Control);
    Transfer &transfer = tcp->prepare(slot, Transfer::AllToAll, &group);
    int next = group.ranks[(group.self + 1) % group.size()];
    int before = group.ranks[(group.self + group.size() - 1) % group.size()];
    if (group.size() == 1) {
      copy(static_cast<char *>(target), static_cast<const char *>(source), bytes);
    } else {
      transfer.sends.push_back({next, static_cast<const char *>(source), nullptr, bytes});
      transfer.receives.push_back({before, nullptr, static_cast<char *>(target), bytes});
    }
    tcp->start(slot);
  }

  void beginExchange(int slot, const Communicator &group, const void *record, int64_t bytes,
                     void *all) override {
    if (take(slot, group, hostsOf(group), all, bytes))
      return shared->startExchange(slot, group, record, bytes, all);
    std::memcpy(static_cast<char *>(all) + group.self * bytes, record, bytes);
    Transfer &transfer = tcp->prepare(slot, Transfer::Exchange, &group);
    transfer.target = static_cast<char *>(all);
    transfer.bytes = bytes;
    tcp->start(slot);
  }
  void beginAgreement(int slot, const Communicator &group, int64_t *record,
                      const RecordShape &shape) override {
    if (take(slot, group, hostsOf(group), record, 0))
      return shared->startAgreement(slot, group, record, shape);
    Transfer &transfer = tcp->prepare(slot, Transfer::Agreement, &group);
    transfer.record = record;
    transfer.shape = shape;
    tcp->start(slot);
  }

  void beginSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag) override {
    if (choose(slot, isHere(peer)))
      return shared->startSend(slot, peer, value, bytes, tag, TrafficClass::SendRecv);
    Transfer &transfer = tcp->prepare(slot, Transfer::Value, nullptr);
    transfer.number = tag;
    transfer.sends.push_back({peer, static_cast<const char *>(value), nullptr, bytes});
    tcp->start(slot);
  }
  void beginRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) override {
    if (choose(slot, isHere(peer)))
      return shared->startRecv(slot, peer, value, bytes, tag);
    Transfer &transfer = tcp->prepare(slot, Transfer::Value, nullptr);
    transfer.number = tag;
    transfer.receives.push_back({peer, nullptr, static_cast<char *>(value), bytes});
    tcp->start(slot);
  }

  /// Both levels at once: neighbours' slices are read while the wire brings the others'; then what each
  /// neighbour has fetched.
  bool pollGather(Flight &flight, int slot) {
    const Hosts &hosts = *flight.hosts;
    const std::vector<int> &here = hosts.members[hosts.own];
    readNeighbours(flight, slot, [&](int place, const char *shown) {
      if (flight.stage == 0)
        return copy(flight.target + here[place] * flight.bytes, shown, flight.bytes);
      for (int member = 0; member < flight.group->size(); ++member)
        if (hosts.hostOf[member] != hosts.own && hosts.fetcher(member, hosts.own) == here[place])
          copy(flight.target + member * flight.bytes, shown + member * flight.bytes, flight.bytes);
    });
    bool fetched = tcp->poll(slot);
    if (flight.left > 0 || !shared->poll(slot) || !fetched)
      return false;
    if (flight.stage == 1)
      return true;
    flight.stage = 1;
    moved[slot] = true;
    show(slot, flight.target, flight.bytes * flight.group->size());
    return false;
  }

  /// This host's sum of another host's part, made by the member of the same place there, goes over the wire
  /// a chunk at a time; sums of hosts are added at the owner.
  bool pollReduce(Flight &flight, int slot) {
    if (flight.stage == 0) {
      readNeighbours(
          flight, slot, [&](int place, const char *shown) { flight.whole[place] = shown; },
          /*done=*/false);
      if (flight.left > 0)
        return false;
      flight.whole[flight.hosts->neighbours.self] = shared->shown(slot, flight.hosts->neighbours.self);
      sendChunk(flight, slot);
      flight.stage = 1;
    }
    while (flight.stage == 1) {
      if (!tcp->poll(slot))
        return false;
      addChunk(flight);
      moved[slot] = true;
      if (flight.offset < flight.bytes) {
        sendChunk(flight, slot);
      } else {
        flight.stage = 2;
        shared->doneReading(slot);
      }
    }
    return shared->poll(slot);
  }
  /// Sums of hosts' chunks lie in the staging buffer: those that go, those that come, this rank's own.
  char *chunkOf(const Flight &flight, int host, bool comes) const {
    int count = flight.hosts->count(), own = flight.hosts->own;
    if (host == own)
      return staging + 2 * (count - 1) * flight.chunk;
    return staging + (host - (host > own) + comes * (count - 1)) * flight.chunk;
  }
  void sendChunk(Flight &flight, int slot) {
    const Hosts &hosts = *flight.hosts;
    int place = hosts.neighbours.self;
    flight.size = std::min(flight.chunk, flight.bytes - flight.offset);
    Transfer &transfer = tcp->prepare(slot, Transfer::AllToAll, flight.group);
    for (int i = 1; i <= hosts.count(); ++i) {
      int host = (hosts.own + i) % hosts.count(), member = hosts.members[host][place];
      int peer = flight.group->ranks[member];
      flight.parts.assign(flight.whole.begin(), flight.whole.end());
      for (const void *&part : flight.parts)
        part = static_cast<const char *>(part) + member * flight.bytes + flight.offset;
      add(flight, chunkOf(flight, host, false), /*accumulate=*/false);
      if (host == hosts.own)
        continue;
      transfer.sends.push_back({peer, chunkOf(flight, host, false), nullptr, flight.size});
      transfer.receives.push_back({peer, nullptr, chunkOf(flight, host, true), flight.size});
    }
    tcp->start(slot);
  }
  void addChunk(Flight &flight) {
    flight.parts.clear();
    for (int host = 0; host < flight.hosts->count(); ++host)
      flight.parts.push_back(chunkOf(flight, host, true));
    add(flight, flight.target + flight.offset, flight.accumulate);
    flight.offset += flight.size;
  }
  /// Adds `parts`, which lose their beginnings.
  void add(Flight &flight, char *target, bool accumulate) {
    int64_t width = bytesOf(flight.type);
    int count = static_cast<int>(flight.parts.size());
    auto some = [&](int64_t begin, int64_t end, int) {
      constexpr int kMost = 64;
      const void *few[kMost];
      std::vector<const void *> many(count > kMost ? count : 0);
      const void **from = many.empty() ? few : many.data();
      for (int i = 0; i < count; ++i)
        from[i] = static_cast<const char *>(flight.parts[i]) + begin * width;
      treeSum(flight.type, from, count, target + begin * width, end - begin, accumulate);
    };
    if (pool)
      pool->split(0, flight.size / width, 16 << 10, some);
    else
      some(0, flight.size / width, 0);
  }

  /// Shows memory to this host's members of the flight's communicator, and is to read theirs.
  void show(int slot, const void *shown, int64_t bytes) {
    Flight &flight = flights[slot];
    const Communicator &neighbours = flight.hosts->neighbours;
    flight.read.assign(neighbours.size(), 0);
    flight.left = neighbours.size() - 1;
    shared->show(slot, neighbours, shown, bytes);
  }
  template <typename Body> void readNeighbours(Flight &flight, int slot, Body body, bool done = true) {
    int count = flight.hosts->neighbours.size(), self = flight.hosts->neighbours.self;
    if (flight.left == 0)
      return;
    shared->poll(slot); // looks for failures
    for (int i = 1; i < count && flight.left > 0; ++i) {
      int place = (self + i) % count;
      const char *shown = flight.read[place] ? nullptr : shared->shown(slot, place);
      if (!shown)
        continue;
      body(place, shown);
      flight.read[place] = 1;
      moved[slot] = true;
      if (--flight.left == 0 && done)
        shared->doneReading(slot);
    }
  }

  bool isHere(int rank) const { return hostNames[rank] == hostNames[thisRank]; }
  const Hosts &hostsOf(const Communicator &group) {
    Known &entry = known[group.number];
    if (!entry.hosts || entry.ranks != group.ranks) {
      entry.ranks = group.ranks;
      entry.hosts = std::make_unique<Hosts>(group, hostNames);
    }
    return *entry.hosts;
  }
  bool choose(int slot, bool local) {
    moved[slot] = false;
    flights[slot].way = shared && local ? Way::Memory : Way::Wire;
    return shared && local;
  }
  /// True if the operation goes through shared memory as a whole.
  bool take(int slot, const Communicator &group, const Hosts &hosts, void *target, int64_t bytes) {
    Flight &flight = flights[slot];
    flight.group = &group;
    flight.hosts = &hosts;
    flight.target = static_cast<char *>(target);
    flight.bytes = bytes;
    flight.stage = 0;
    return choose(slot, hosts.local);
  }
  void copy(char *target, const char *source, int64_t bytes) {
    if (target == source)
      return;
    if (pool)
      pool->split(0, bytes, 256 << 10, [&](int64_t begin, int64_t end, int) {
        std::memcpy(target + begin, source + begin, end - begin);
      });
    else
      std::memcpy(target, source, bytes);
  }

  struct Known {
    std::vector<int> ranks;
    std::unique_ptr<Hosts> hosts;
  };

  std::shared_ptr<SharedGroup> memory;
  std::unique_ptr<Neighbours> shared; ///< of this host's ranks, null if this one is alone
  std::vector<std::string> hostNames; ///< by rank
  std::vector<Known> known;           ///< by number of the communicator
  bool oneHost = false;
  Waker::Bell bell{};
  Waker own{bell, /*shared=*/false, {/*spins=*/0}}; ///< of a rank alone on its host
  std::array<Flight, kSlots> flights;
  ThreadPool *pool = nullptr;
  char *staging = nullptr;
  int64_t stagingBytes = 0;
  std::unique_ptr<TcpLinks> tcp; ///< last: its thread rings
};

} // namespace

std::unique_ptr<Engine> makeWorldEngine(int rank, Met met, std::shared_ptr<SharedGroup> memory) {
  return std::make_unique<WorldEngine>(rank, std::move(met), std::move(memory));
}

} // namespace dsopt::runtime
