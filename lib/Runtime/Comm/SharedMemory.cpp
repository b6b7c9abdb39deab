//===- SharedMemory.cpp - ranks of one machine -----------------------------===//
//
// One shared mapping holds all arenas and a block of control words a rank: made
// before the fork, or a file in memory that one rank hands to the others of its
// host. Peers' arenas are read directly: a gather copies from the peers' slices,
// a reduction adds from the peers' whole buffers. A rank posts where its buffer is
// in the mapping, reads what its peers posted, says that it is done reading, and
// is complete when all others are done too.
//
//===----------------------------------------------------------------------===//

#include "Comm/Neighbours.h"
#include "Core/Futex.h"
#include "Core/ThreadPool.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dsopt::runtime {
namespace {

constexpr int64_t kRecordBytes = 16 << 10;
constexpr int kTurnMilliseconds = 2000;
constexpr int kSpins = 2000;
enum State : int { Running, Finished };

enum class Kind : int { None, Gather, Reduce, AllToAll, Shift, Exchange, Agreement, Window, Send, Recv };
constexpr const char *kKinds[] = {"nothing",     "a gather",     "a reduction", "an all-to-all",
                                  "an exchange", "an agreement", "a window"};

/// A communicator's sequence of collectives. `posted` of them have their buffer at `place` in the mapping;
/// this rank has read all it needs of its peers for `done` of them.
struct alignas(64) Channel {
  std::atomic<uint64_t> posted, done;
  int64_t place;
  int64_t bytes;
  Kind kind;
};

/// What one slot of a rank sends: `posted` values, of which `taken` have been read.
struct alignas(64) Outbox {
  std::atomic<uint64_t> posted, taken;
  int64_t place;
  int64_t bytes;
  std::atomic<uint64_t> tag;
  std::atomic<int> peer;
};

struct alignas(64) RankBlock {
  Waker::Bell bell;
  std::atomic<int> state;
  std::atomic<int64_t> step, action;
  Pulse pulse;
  Channel channels[Engine::kCommunicators]; ///< by number
  Outbox outbox[Engine::kSlots];
  alignas(8) char records[Engine::kCommunicators][kRecordBytes]; ///< of exchanges and agreements
};

struct alignas(64) Control {
  std::atomic<uint64_t> failure; ///< (rank + 1) << 8 | status, 0: none
  RankBlock ranks[1];
};

int64_t roundUp(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

void ring(RankBlock &rank) { Waker::ring(rank.bell, /*shared=*/true); }

int rankOf(uint64_t failure) { return static_cast<int>(failure >> 8) - 1; }
int statusOf(uint64_t failure) { return static_cast<int>(failure & 0xff); }

void markFailed(Control &control, int size, int rank, int status) {
  uint64_t none = 0;
  if (!control.failure.compare_exchange_strong(none, static_cast<uint64_t>(rank + 1) << 8 | (status & 0xff)))
    return;
  for (int other = 0; other < size; ++other)
    ring(control.ranks[other]);
}

class SharedEngine final : public Neighbours {
public:
  SharedEngine(Control *control, int rank, int size)
      : control(control), me(control->ranks[rank]), own(me.bell, /*shared=*/true, {/*spins=*/0}) {
    becomeRank(rank, size);
    setPulse(&me.pulse);
    parts.resize(size);
    read.resize(size * kSlots);
  }
  ~SharedEngine() override { setPulse(nullptr); }
  const char *name() const override { return "shared memory"; }
  void setPool(ThreadPool *newPool) override { pool = newPool; }

  bool poll(int slot) override {
    if (uint64_t failure = control->failure.load(std::memory_order_relaxed)) {
      Error error(statusOf(failure), "rank " + std::to_string(rankOf(failure)) + " failed", /*quiet=*/true);
      error.rank = rankOf(failure);
      throw error;
    }
    Operation &op = operations[slot];
    moved[slot] = false;
    bool complete = false;
    switch (op.kind) {
    case Kind::None:
      return true;
    case Kind::Gather:
    case Kind::AllToAll:
    case Kind::Shift:
      complete = pollCopies(op, slot);
      break;
    case Kind::Reduce:
      complete = pollReduce(op, slot);
      break;
    case Kind::Exchange:
    case Kind::Agreement:
      complete = pollRecords(op, slot);
      break;
    case Kind::Window:
      complete = op.left <= 0 && finishReading(op);
      break;
    case Kind::Send: {
      Outbox &box = me.outbox[slot];
      complete = box.taken.load(std::memory_order_acquire) == box.posted.load(std::memory_order_relaxed);
      break;
    }
    case Kind::Recv:
      complete = pollRecv(op, slot);
      break;
    }
    if (complete)
      op.kind = Kind::None;
    return complete;
  }

  void show(int slot, const Communicator &group, const void *memory, int64_t bytes) override {
    Operation &op = begin(slot, Kind::Window, group);
    op.bytes = bytes;
    post(op, memory, bytes);
    op.left = 1;
  }
  const char *shown(int slot, int member) override {
    Operation &op = operations[slot];
    Channel *channel = member == op.group->self ? &mine(op) : posted(op, member);
    return channel ? at(channel->place) : nullptr;
  }
  void doneReading(int slot) override { operations[slot].left = 0; }

  Waker &waker() override { return own; }
  void setSpinning(bool spins) override { own.setSpins(spins ? kSpins : 0); }

  uint64_t peerBeats() const override {
    uint64_t beats = 0;
    for (int peer : world().ranks)
      if (peer != thisRank)
        beats += control->ranks[peer].pulse.beats.load(std::memory_order_relaxed);
    return beats;
  }
  std::vector<int> awaited(int slot) const override {
    const Operation &op = operations[slot];
    if (op.kind == Kind::Send)
      return {me.outbox[slot].peer.load()};
    if (op.kind == Kind::Recv)
      return {op.peer};
    std::vector<int> ranks;
    if (op.kind != Kind::None)
      for (int peer : op.group->ranks) {
        const Channel &channel = control->ranks[peer].channels[op.group->number];
        if ((op.left < 0 ? channel.done : channel.posted).load(std::memory_order_acquire) < op.sequence)
          ranks.push_back(peer);
      }
    return ranks;
  }

  Whereabouts whereabouts(int rank) const override {
    const RankBlock &block = control->ranks[rank];
    return {block.step, block.action, 0};
  }
  void publish(int64_t step, int64_t action) override {
    me.step.store(step, std::memory_order_relaxed);
    me.action.store(action, std::memory_order_relaxed);
  }
  void fail(int status, bool quiet) override {
    // Whoever speaks for all must not be cut short by the failure of those who leave it to him.
    for (int left = kTurnMilliseconds; quiet && left > 0 && control->failure == 0; --left)
      usleep(1000);
    markFailed(*control, size(), thisRank, status);
  }
  void finish() override {
    publish(-1, -1);
    me.state = Finished;
  }

private:
  void beginGather(int slot, const Communicator &group, const void *slice, void *target,
                   int64_t bytes) override {
    Operation &op = begin(slot, Kind::Gather, group);
    op.target = static_cast<char *>(target);
    op.bytes = bytes;
    char *own = op.target + group.self * bytes;
    if (own != slice)
      copy(own, slice, bytes);
    post(op, slice, bytes);
  }
  void beginReduce(int slot, const Communicator &group, Element type, const void *whole, void *target,
                   int64_t elements, bool accumulate) override {
    Operation &op = begin(slot, Kind::Reduce, group);
    op.target = static_cast<char *>(target);
    op.bytes = elements * bytesOf(type);
    op.type = type;
    op.accumulate = accumulate;
    post(op, whole, op.bytes);
  }
  void beginAllToAll(int slot, const Communicator &group, const void *source, void *target,
                     int64_t bytes) override {
    Operation &op = begin(slot, Kind::AllToAll, group);
    op.target = static_cast<char *>(target);
    op.bytes = bytes;
    copy(op.target + group.self * bytes, static_cast<const char *>(source) + group.self * bytes, bytes);
    post(op, source, bytes);
  }
  void beginShift(int slot, const Communicator &group, const void *source, void *target,
                  int64_t bytes) override {
    Operation &op = begin(slot, Kind::Shift, group);
    op.target = static_cast<char *>(target);
    op.bytes = bytes;
    if (group.size() == 1)
      copy(op.target, static_cast<const char *>(source), bytes);
    post(op, source, bytes);
  }
  void beginExchange(int slot, const Communicator &group, const void *record, int64_t bytes,
                     void *all) override {
    Operation &op = begin(slot, Kind::Exchange, group);
    op.source = static_cast<const char *>(record);
    op.target = static_cast<char *>(all);
    op.bytes = bytes;
    op.offset = 0;
    postRecord(op);
  }
  void beginAgreement(int slot, const Communicator &group, int64_t *record,
                      const RecordShape &shape) override {
    Operation &op = begin(slot, Kind::Agreement, group);
    op.target = reinterpret_cast<char *>(record);
    op.shape = shape;
    op.bytes = shape.words() * static_cast<int64_t>(sizeof(int64_t));
    op.offset = 0;
    postRecord(op);
  }
  void beginSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag) override {
    operations[slot].kind = Kind::Send;
    Outbox &box = me.outbox[slot];
    box.place = placeOf(value);
    box.bytes = bytes;
    box.tag = tag;
    box.peer = peer;
    box.posted.store(box.posted.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    ring(control->ranks[peer]);
  }
  void beginRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) override {
    Operation &op = operations[slot];
    op.kind = Kind::Recv;
    op.peer = peer;
    op.target = static_cast<char *>(value);
    op.bytes = bytes;
    op.tag = tag;
  }

  struct Operation {
    Kind kind = Kind::None;
    const Communicator *group = nullptr;
    uint64_t sequence = 0;
    int left = 0; ///< peers not read yet; -1: waiting for the peers to be done reading
    const char *source = nullptr;
    char *target = nullptr;
    int64_t bytes = 0, offset = 0;
    Element type = Element::F32;
    bool accumulate = false;
    RecordShape shape;
    int peer = 0;
    uint64_t tag = 0;
  };

  Operation &begin(int slot, Kind kind, const Communicator &group) {
    Operation &op = operations[slot];
    op.kind = kind;
    op.group = &group;
    return op;
  }
  /// Where memory of the mapping lies in it: processes may have it at different addresses.
  int64_t placeOf(const void *pointer) const {
    return static_cast<const char *>(pointer) - reinterpret_cast<const char *>(control);
  }
  const char *at(int64_t place) const { return reinterpret_cast<const char *>(control) + place; }
  /// A member's end of the channel that `op` uses.
  Channel &at(const Operation &op, int member) {
    return control->ranks[op.group->ranks[member]].channels[op.group->number];
  }
  Channel &mine(const Operation &op) { return me.channels[op.group->number]; }
  void ringGroup(const Communicator &group) {
    for (int peer : group.ranks)
      if (peer != thisRank)
        ring(control->ranks[peer]);
  }
  void post(Operation &op, const void *pointer, int64_t bytes) {
    Channel &channel = mine(op);
    channel.place = placeOf(pointer);
    channel.bytes = bytes;
    channel.kind = op.kind;
    op.sequence = channel.posted.load(std::memory_order_relaxed) + 1;
    op.left = op.group->size() - 1;
    std::fill_n(readOf(op), op.group->size(), 0);
    channel.posted.store(op.sequence, std::memory_order_release);
    ringGroup(*op.group);
  }
  char *readOf(const Operation &op) { return read.data() + (&op - operations) * size(); }
  void postRecord(Operation &op) {
    int64_t size = std::min(kRecordBytes, op.bytes - op.offset);
    char *record = me.records[op.group->number];
    bool agrees = op.kind == Kind::Agreement;
    std::memcpy(record, (agrees ? op.target : op.source) + op.offset, size);
    if (!agrees)
      std::memcpy(op.target + op.group->self * op.bytes + op.offset, record, size);
    post(op, record, op.bytes);
  }
  /// The member's channel once it has posted this collective, else null.
  Channel *posted(Operation &op, int member) {
    Channel &channel = at(op, member);
    if (channel.posted.load(std::memory_order_acquire) < op.sequence)
      return nullptr;
    if (channel.bytes != op.bytes || channel.kind != op.kind) {
      auto described = [](Kind kind, int64_t bytes) {
        return std::string(kKinds[static_cast<int>(kind)]) + " of " + std::to_string(bytes) + " bytes";
      };
      throw Error(StatusFailure, "collectives do not match: rank " + std::to_string(op.group->ranks[member]) +
                                     " has " + described(channel.kind, channel.bytes) + ", rank " +
                                     std::to_string(thisRank) + " expected " + described(op.kind, op.bytes));
    }
    return &channel;
  }
  /// Says that all peers are read; true once all peers say so.
  bool finishReading(Operation &op) {
    if (op.left == 0) {
      op.left = -1;
      mine(op).done.store(op.sequence, std::memory_order_release);
      ringGroup(*op.group);
    }
    for (int member = 0; member < op.group->size(); ++member)
      if (at(op, member).done.load(std::memory_order_acquire) < op.sequence)
        return false;
    return true;
  }
  /// Reads each peer that has posted and is not read yet.
  template <typename Body> void readPeers(Operation &op, int slot, Body body) {
    char *seen = readOf(op);
    int count = op.group->size();
    for (int i = 1; i < count && op.left > 0; ++i) {
      // Each rank starts with its right neighbour, so that not all read the same memory.
      int member = (op.group->self + i) % count;
      if (seen[member])
        continue;
      if (Channel *channel = posted(op, member)) {
        body(member, *channel);
        seen[member] = 1;
        --op.left;
        moved[slot] = true;
      }
    }
  }

  /// A gather takes all of what a peer posts, an all-to-all what is this rank's of it, a shift what the
  /// member before has.
  bool pollCopies(Operation &op, int slot) {
    int64_t part = op.kind == Kind::AllToAll ? op.group->self * op.bytes : 0;
    int before = (op.group->self + op.group->size() - 1) % op.group->size();
    if (op.left > 0)
      readPeers(op, slot, [&](int member, Channel &channel) {
        if (op.kind == Kind::Shift) {
          if (member == before)
            copy(op.target, at(channel.place), op.bytes);
          return;
        }
        copy(op.target + member * op.bytes, at(channel.place) + part, op.bytes);
      });
    return op.left <= 0 && finishReading(op);
  }
  bool pollReduce(Operation &op, int slot) {
    if (op.left >= 0) {
      int count = op.group->size();
      for (int member = 0; member < count; ++member) {
        Channel *channel = member == op.group->self ? &mine(op) : posted(op, member);
        if (!channel)
          return false;
        parts[member] = at(channel->place) + op.group->self * op.bytes;
      }
      int64_t width = bytesOf(op.type);
      divide(op.bytes / width, 16 << 10, [&](int64_t begin, int64_t end) {
        constexpr int kMost = 64;
        const void *some[kMost];
        std::vector<const void *> many(count > kMost ? count : 0);
        const void **from = many.empty() ? some : many.data();
        for (int i = 0; i < count; ++i)
          from[i] = parts[i] + begin * width;
        treeSum(op.type, from, count, op.target + begin * width, end - begin, op.accumulate);
      });
      op.left = 0;
      moved[slot] = true;
    }
    return finishReading(op);
  }
  /// An exchange keeps the peers' records, an agreement merges them into this rank's.
  bool pollRecords(Operation &op, int slot) {
    int64_t size = std::min(kRecordBytes, op.bytes - op.offset);
    if (op.left > 0)
      readPeers(op, slot, [&](int member, Channel &channel) {
        if (op.kind == Kind::Exchange)
          std::memcpy(op.target + member * op.bytes + op.offset, at(channel.place), size);
        else
          mergeRecords(op.shape, op.offset / 8, (op.offset + size) / 8,
                       reinterpret_cast<int64_t *>(op.target + op.offset),
                       reinterpret_cast<const int64_t *>(at(channel.place)));
      });
    if (op.left > 0 || !finishReading(op))
      return false;
    op.offset += size;
    if (op.offset >= op.bytes)
      return true;
    moved[slot] = true;
    postRecord(op);
    return false;
  }
  bool pollRecv(Operation &op, int slot) {
    for (Outbox &box : control->ranks[op.peer].outbox) {
      // The sender writes the box anew only once it is taken: what is read while it is not is of `posted`.
      uint64_t posted = box.posted.load();
      if (box.taken.load() == posted || box.peer.load() != thisRank || box.tag.load() != op.tag ||
          box.taken.load() + 1 != posted)
        continue;
      if (box.bytes != op.bytes)
        throw Error(StatusFailure, "rank " + std::to_string(op.peer) + " sends " + std::to_string(box.bytes) +
                                       " bytes, rank " + std::to_string(thisRank) + " expected " +
                                       std::to_string(op.bytes));
      copy(op.target, at(box.place), op.bytes);
      box.taken.store(posted, std::memory_order_release);
      ring(control->ranks[op.peer]);
      moved[slot] = true;
      return true;
    }
    return false;
  }

  template <typename Body> void divide(int64_t elements, int64_t grain, Body body) {
    if (pool)
      pool->split(0, elements, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
    else
      body(0, elements);
  }
  void copy(void *target, const void *source, int64_t bytes) {
    divide(bytes, 256 << 10, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char *>(target) + begin, static_cast<const char *>(source) + begin,
                  end - begin);
    });
  }

  Control *control;
  RankBlock &me;
  Waker own;
  ThreadPool *pool = nullptr;
  Operation operations[kSlots];
  std::vector<const char *> parts;
  std::vector<char> read;
};

} // namespace

std::unique_ptr<SharedGroup> SharedGroup::map(const std::vector<int64_t> &arenaBytes, int file, bool fresh) {
  std::unique_ptr<SharedGroup> group(new SharedGroup());
  int size = group->worldSize = static_cast<int>(arenaBytes.size());
  int64_t offset = roundUp(sizeof(Control) + (size - 1) * sizeof(RankBlock), 2 << 20);
  std::vector<int64_t> offsets;
  int sharing = 0; // ranks with an arena here
  for (int64_t bytes : arenaBytes) {
    offsets.push_back(offset);
    offset += roundUp(bytes, 2 << 20);
    sharing += bytes > 0;
  }
  group->mappedBytes = offset;
  auto refuse = [&] {
    throw Error(StatusFailure, "cannot map " + std::to_string(offset) + " bytes of shared memory for " +
                                   std::to_string(sharing) + " ranks: " + strerror(errno));
  };
  if (file >= 0 && fresh && sys::ftruncate(file, offset) != 0)
    refuse();
  int flags = MAP_SHARED | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0);
  void *memory = sys::mmap(nullptr, offset, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED)
    refuse();
  sys::madvise(memory, offset, MADV_HUGEPAGE);
  group->mapping = memory;
  for (int64_t start : offsets)
    group->arenas.push_back(static_cast<char *>(memory) + start);
  auto *control = static_cast<Control *>(memory);
  if (fresh) {
    for (int rank = 0; rank < size; ++rank)
      control->ranks[rank].step = control->ranks[rank].action = -1;
  }
  return group;
}

std::unique_ptr<SharedGroup> SharedGroup::create(const std::vector<int64_t> &arenaBytes) {
  return map(arenaBytes, -1, true);
}

std::unique_ptr<SharedGroup> SharedGroup::createFile(const std::vector<int64_t> &arenaBytes, int &file) {
  file = sys::memfd("dsopt-ranks", MFD_CLOEXEC);
  if (file < 0)
    throw Error(StatusFailure, std::string("memfd_create failed: ") + strerror(errno));
  return map(arenaBytes, file, true);
}

std::unique_ptr<SharedGroup> SharedGroup::open(const std::vector<int64_t> &arenaBytes, int file) {
  return map(arenaBytes, file, false);
}

SharedGroup::~SharedGroup() {
  if (mapping)
    sys::munmap(mapping, mappedBytes);
}

char *SharedGroup::arena(int rank) const { return arenas[rank]; }

std::unique_ptr<Engine> SharedGroup::join(int rank) {
  return std::make_unique<SharedEngine>(static_cast<Control *>(mapping), rank, worldSize);
}

bool SharedGroup::markEnded(int rank, int waitStatus) {
  auto &control = *static_cast<Control *>(mapping);
  if (WIFEXITED(waitStatus) && control.ranks[rank].state == Finished)
    return true;
  int status = WIFEXITED(waitStatus) && WEXITSTATUS(waitStatus) == StatusInput ? StatusInput : StatusFailure;
  markFailed(control, worldSize, rank, status);
  return false;
}

int SharedGroup::failedRank() const { return rankOf(static_cast<Control *>(mapping)->failure); }
int SharedGroup::failureStatus() const { return statusOf(static_cast<Control *>(mapping)->failure); }
const Pulse &SharedGroup::pulseOf(int rank) const {
  return static_cast<Control *>(mapping)->ranks[rank].pulse;
}
int64_t SharedGroup::stepOf(int rank) const { return static_cast<Control *>(mapping)->ranks[rank].step; }
int64_t SharedGroup::actionOf(int rank) const { return static_cast<Control *>(mapping)->ranks[rank].action; }

} // namespace dsopt::runtime
