//===- World.cpp - shared memory within a host, TCP between hosts ----------===//

#include "dsopt/Runtime/World.h"
#include "Comm/Hmac.h"
#include "Comm/Rendezvous.h"
#include "Comm/Tcp.h"
#include "Core/Futex.h"
#include "Core/ThreadPool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/un.h>
#include <unistd.h>

namespace dsopt::runtime {
namespace {

/// Sends each operation the nearest way: through shared memory if all who take part are on this host,
/// else over TCP. The choice changes no bit. Connections to all ranks tell when one dies.
class WorldEngine final : public Engine {
public:
  WorldEngine(int rank, Met met, std::shared_ptr<SharedGroup> group)
      : memory(std::move(group)), shared(memory ? memory->join(rank) : nullptr), hosts(std::move(met.hosts)) {
    becomeRank(rank, static_cast<int>(hosts.size()));
    oneHost = isLocal(world());
    tcp = std::make_unique<TcpLinks>(rank, std::move(met.links), std::move(met.names),
                                     [this] { waker().ring(); });
  }

  const char *name() const override {
    return oneHost ? "shared memory" : shared ? "shared memory and TCP" : "TCP";
  }
  void setPool(ThreadPool *newPool) override {
    pool = newPool;
    if (shared)
      shared->setPool(newPool);
  }
  void setStaging(char *memory, int64_t bytes) override { tcp->setStaging(memory, bytes); }
  bool needsStaging() const override { return !oneHost; }

  void startGather(int slot, const Communicator &group, const void *slice, void *target, int64_t bytes,
                   TrafficClass kind) override {
    count(kind, bytes * (group.size() - 1));
    if (isShared(slot, group))
      return shared->startGather(slot, group, slice, target, bytes, kind);
    copy(static_cast<char *>(target) + group.self * bytes, slice, bytes);
    Transfer transfer = collective(Transfer::Gather, group, bytes);
    transfer.source = static_cast<const char *>(slice);
    transfer.target = static_cast<char *>(target);
    tcp->start(slot, transfer);
  }
  void startReduce(int slot, const Communicator &group, Element type, const void *whole, void *target,
                   int64_t elements, bool accumulate) override {
    int64_t bytes = elements * bytesOf(type);
    count(TrafficClass::ReduceScatter, bytes * (group.size() - 1));
    if (isShared(slot, group))
      return shared->startReduce(slot, group, type, whole, target, elements, accumulate);
    Transfer transfer = collective(Transfer::Reduce, group, bytes);
    transfer.source = static_cast<const char *>(whole);
    transfer.target = static_cast<char *>(target);
    transfer.type = type;
    transfer.accumulate = accumulate;
    tcp->start(slot, transfer);
  }
  void startAllToAll(int slot, const Communicator &group, const void *source, void *target,
                     int64_t bytes) override {
    count(TrafficClass::AllToAll, bytes * (group.size() - 1));
    if (isShared(slot, group))
      return shared->startAllToAll(slot, group, source, target, bytes);
    int64_t own = group.self * bytes;
    copy(static_cast<char *>(target) + own, static_cast<const char *>(source) + own, bytes);
    Transfer transfer = collective(Transfer::AllToAll, group, bytes);
    transfer.source = static_cast<const char *>(source);
    transfer.target = static_cast<char *>(target);
    tcp->start(slot, transfer);
  }
  void startExchange(int slot, const Communicator &group, const void *record, int64_t bytes,
                     void *all) override {
    count(TrafficClass::Control, bytes * (group.size() - 1));
    if (isShared(slot, group))
      return shared->startExchange(slot, group, record, bytes, all);
    std::memcpy(static_cast<char *>(all) + group.self * bytes, record, bytes);
    Transfer transfer = collective(Transfer::Exchange, group, bytes);
    transfer.source = static_cast<const char *>(all) + group.self * bytes;
    transfer.target = static_cast<char *>(all);
    tcp->start(slot, transfer);
  }
  void startSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag,
                 TrafficClass kind) override {
    count(kind, bytes);
    if (isSharedWith(slot, peer))
      return shared->startSend(slot, peer, value, bytes, tag, kind);
    Transfer transfer = ofValue(peer, bytes, tag);
    transfer.receives = false;
    transfer.source = static_cast<const char *>(value);
    tcp->start(slot, transfer);
  }
  void startRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) override {
    if (isSharedWith(slot, peer))
      return shared->startRecv(slot, peer, value, bytes, tag);
    Transfer transfer = ofValue(peer, bytes, tag);
    transfer.sends = false;
    transfer.target = static_cast<char *>(value);
    tcp->start(slot, transfer);
  }

  bool poll(int slot) override {
    tcp->check();
    if (!inMemory[slot])
      return tcp->poll(slot);
    bool complete = shared->poll(slot);
    moved[slot] = shared->progressed(slot);
    return complete;
  }

  Waker &waker() override { return shared ? shared->waker() : own; }

  void publish(int64_t step, int64_t action) override {
    tcp->publish(step);
    if (shared)
      shared->publish(step, action);
  }
  void abandon() override { tcp->abandon(); }
  void fail(int status, bool quiet) override { tcp->fail(status, quiet); }
  void finish() override {
    publish(-1, -1);
    tcp->finish();
  }

private:
  bool isHere(int rank) const { return hosts[rank] == hosts[thisRank]; }
  bool isLocal(const Communicator &group) const {
    return std::all_of(group.ranks.begin(), group.ranks.end(), [&](int rank) { return isHere(rank); });
  }
  bool isShared(int slot, const Communicator &group) { return choose(slot, isLocal(group)); }
  bool isSharedWith(int slot, int peer) { return choose(slot, isHere(peer)); }
  bool choose(int slot, bool local) {
    moved[slot] = false;
    return inMemory[slot] = shared && local;
  }
  static Transfer collective(Transfer::Kind kind, const Communicator &group, int64_t bytes) {
    Transfer transfer;
    transfer.kind = kind;
    transfer.group = &group;
    transfer.bytes = bytes;
    return transfer;
  }
  static Transfer ofValue(int peer, int64_t bytes, uint64_t tag) {
    Transfer transfer;
    transfer.kind = Transfer::Value;
    transfer.peer = peer;
    transfer.bytes = bytes;
    transfer.tag = tag;
    return transfer;
  }
  void copy(char *target, const void *source, int64_t bytes) {
    if (target == source)
      return;
    auto *from = static_cast<const char *>(source);
    if (pool)
      pool->split(0, bytes, 256 << 10, [&](int64_t begin, int64_t end, int) {
        std::memcpy(target + begin, from + begin, end - begin);
      });
    else
      std::memcpy(target, from, bytes);
  }

  std::shared_ptr<SharedGroup> memory;
  std::unique_ptr<Engine> shared; ///< of this host's ranks, null if this one is alone
  std::vector<std::string> hosts;
  bool oneHost = false;
  Waker::Bell bell{};
  Waker own{bell, /*shared=*/false, {/*spins=*/usableCpus() > 1 ? 500 : 0}}; ///< of a rank alone on its host
  std::array<bool, kSlots> inMemory{};
  ThreadPool *pool = nullptr;
  std::unique_ptr<TcpLinks> tcp; ///< last: its thread rings
};

/// The name in the abstract namespace under which the first rank of a host hands out its memory.
Address memoryName(const Met &met, int first) {
  Address address;
  auto &name = reinterpret_cast<sockaddr_un &>(address.storage);
  name.sun_family = AF_UNIX;
  std::string text = "dsopt-" + std::to_string(first) + "-";
  // Everybody on this host can read such names: the key itself does not belong there.
  for (unsigned char byte : hmac(met.key, "memory")) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  address.bytes = offsetof(sockaddr_un, sun_path) + 1 + text.size();
  return address;
}

bool isOwnUser(const Socket &socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

/// The memory of this host: the first rank makes it, the others map it too.
std::shared_ptr<SharedGroup> shareMemory(const Meeting &meeting, const Met &met,
                                         std::vector<int64_t> arenas) {
  std::vector<int> local;
  for (int rank = 0; rank < meeting.size; ++rank)
    if (met.hosts[rank] == met.hosts[meeting.rank])
      local.push_back(rank);
    else
      arenas[rank] = 0;
  if (local.size() == 1)
    return nullptr;
  for (int rank : local)
    arenas[rank] = std::max<int64_t>(arenas[rank], 1);
  Patience patience{Patience::Clock::now() + std::chrono::seconds(20), meeting.interrupted};
  std::string why = "no answer";
  int first = local.front();
  Address address = memoryName(met, first);
  if (meeting.rank == first) {
    Socket listener = listenAt(address);
    if (!listener)
      throw Disconnected(std::strerror(errno));
    int fd = -1;
    std::shared_ptr<SharedGroup> group = SharedGroup::createFile(arenas, fd);
    Socket file(fd);
    for (size_t left = local.size() - 1; left > 0;) {
      Socket peer = acceptOnce(listener, patience);
      if (peer && isOwnUser(peer)) {
        sendDescriptor(peer, file.fd());
        --left;
      } else if (patience.over()) {
        throw LaunchError(StatusFailure, "rank " + std::to_string(first) + " on " + met.names[first] +
                                             ": not all ranks of this host took their shared memory");
      }
    }
    return group;
  }
  while (!patience.over()) {
    Socket socket = connectOnce(address, patience, why);
    if (!socket) {
      waitFor(-1, 0, patience.within(std::chrono::milliseconds(2)));
      continue;
    }
    if (!isOwnUser(socket))
      break;
    Socket file(receiveDescriptor(socket, patience));
    return SharedGroup::open(arenas, file.fd());
  }
  throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " on " + met.names[meeting.rank] +
                                       " cannot take its memory from rank " + std::to_string(first) + ": " +
                                       why);
}

} // namespace

Joined joinWorld(const Meeting &meeting, const std::vector<int64_t> &arenaBytes) {
  Met met = meet(meeting);
  Joined joined;
  try {
    joined.memory = shareMemory(meeting, met, arenaBytes);
  } catch (const Disconnected &error) {
    throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " on " +
                                         met.names[meeting.rank] +
                                         ": handing over memory failed: " + error.what());
  }
  joined.arena = joined.memory ? joined.memory->arena(meeting.rank) : allocateArena(arenaBytes[meeting.rank]);
  joined.engine = std::make_unique<WorldEngine>(meeting.rank, std::move(met), joined.memory);
  return joined;
}

} // namespace dsopt::runtime
