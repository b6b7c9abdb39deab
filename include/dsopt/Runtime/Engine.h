//===- Engine.h - what ranks say to each other ------------------*- C++ -*-===//
//
// The interface between the executor and what carries bytes between ranks.
// Operations are nonblocking state machines in slots, at most one in a slot (the
// executor uses a slot for each queue); `poll` drives one on. An operation is
// complete when its result is there and no peer reads its buffers any more.
// Matching: collectives of one communicator come in the same order on all its
// members, one at a time, in whatever slots; a send meets the receive of the same
// tag.
//
// Three engines: ranks of one machine in shared memory (SharedGroup), MPI, and what
// World.h makes of processes that another launcher started.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ENGINE_H
#define DSOPT_RUNTIME_ENGINE_H

#include "dsopt/Runtime/Element.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Liveness.h"
#include "dsopt/Runtime/Waker.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

class ThreadPool;

/// Classes of traffic that are counted, in the order of `Traffic`; `Control` is
/// what agreements and saving move.
enum class TrafficClass {
  AllGather,
  ReduceScatter,
  AllReduce,
  SendRecv,
  AllToAll,
  Tied,
  TensorParallel,
  SequenceParallel,
  Control
};
inline constexpr int kTrafficClasses = 9;
using SentBytes = std::array<int64_t, kTrafficClasses>;

/// The class named as in the program table ("all_gather", ...); throws on others.
TrafficClass trafficClass(const std::string &name);

/// Ranks that talk among themselves, in the order in which their parts lie. `number` is the same on all of
/// them; a rank is in one communicator of a number at most.
struct Communicator {
  int number = 0;
  std::vector<int> ranks;
  int self = 0; ///< this rank's place among them

  Communicator() = default;
  /// An Error of status 1 if `rank` is not among `ranks`.
  Communicator(int number, std::vector<int> ranks, int rank);
  int size() const { return static_cast<int>(ranks.size()); }
};

/// How the words of an agreement's records are merged, in this order: some are added, the bits of some are
/// or'ed, of some the least is taken. All three are exact, so records merge to one result in any order.
struct RecordShape {
  int64_t sums = 0, bits = 0, least = 0;
  int64_t words() const { return sums + bits + least; }
};
/// Merges words [begin, end) of a record, which lie at `from`, into those at `into`.
void mergeRecords(const RecordShape &shape, int64_t begin, int64_t end, int64_t *into, const int64_t *from);

/// Where a rank was when it was last heard of: step and action index, -1 before the first or between steps.
struct Whereabouts {
  int64_t step = -1, action = -1;
  double silence = 0; ///< seconds since then; 0 where its memory is looked at
};

class Engine {
public:
  static constexpr int kSlots = 8;
  /// The slot of the blocking forms below; no queue's.
  static constexpr int kControlSlot = kSlots - 1;
  /// Numbers of communicators are less; 0 is that of all ranks, for the blocking forms.
  static constexpr int kCommunicators = 16;
  virtual ~Engine() = default;

  int rank() const { return thisRank; }
  int size() const { return all.size(); }
  const Communicator &world() const { return all; }
  virtual const char *name() const = 0;

  /// Threads that copy and add; without one the caller does all of it.
  virtual void setPool(ThreadPool *) {}
  /// Scratch for engines that cannot read their peers' memory (the program's buffer "staging").
  virtual void setStaging(char *, int64_t) {}
  virtual bool needsStaging() const { return false; }
  /// Tags of values that this rank `sends` to a peer, or receives from it, several of which may fly at once.
  /// The peer adds the same before any of them flies: an engine that has fewer tags can number them.
  virtual void addTags(int, bool, const std::vector<uint64_t> &) {}

  // Communicators outlive their operations. In shared memory what peers read (`slice`, `whole`, `source`, a
  // sent value and the target of a gather) has to lie in the rank's arena. What each counts as sent is what
  // goes to other ranks, whichever way an engine takes.

  /// `bytes` of every member's `slice`, in their order, into `target`. `slice` may be this rank's part of
  /// `target`.
  void startGather(int slot, const Communicator &group, const void *slice, void *target, int64_t bytes,
                   TrafficClass kind) {
    count(kind, bytes * (group.size() - 1));
    beginGather(slot, group, slice, target, bytes);
  }
  /// `whole` holds `elements` of the type for each member; the sum over the members of this rank's part goes
  /// (or with `accumulate` is added) to `target`, along the canonical tree. `target` may be that part itself.
  void startReduce(int slot, const Communicator &group, Element type, const void *whole, void *target,
                   int64_t elements, bool accumulate) {
    count(TrafficClass::ReduceScatter, elements * bytesOf(type) * (group.size() - 1));
    beginReduce(slot, group, type, whole, target, elements, accumulate);
  }
  /// `source` holds `bytes` for each member, `target` gets what each member has for this rank, in their
  /// order. The two have no byte in common.
  void startAllToAll(int slot, const Communicator &group, const void *source, void *target, int64_t bytes,
                     TrafficClass kind = TrafficClass::AllToAll) {
    count(kind, bytes * (group.size() - 1));
    beginAllToAll(slot, group, source, target, bytes);
  }
  /// `bytes` from each member to the next one, from the last to the first. The two have no byte in common.
  void startShift(int slot, const Communicator &group, const void *source, void *target, int64_t bytes,
                  TrafficClass kind) {
    count(kind, group.size() > 1 ? bytes : 0);
    beginShift(slot, group, source, target, bytes);
  }
  /// `peer` is a rank.
  void startSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag, TrafficClass kind) {
    count(kind, bytes);
    beginSend(slot, peer, value, bytes, tag);
  }
  void startRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) {
    beginRecv(slot, peer, value, bytes, tag);
  }
  /// `bytes` of every member's `record`, in their order, into `all`. Any memory will do.
  void startExchange(int slot, const Communicator &group, const void *record, int64_t bytes, void *all) {
    count(TrafficClass::Control, bytes * (group.size() - 1));
    beginExchange(slot, group, record, bytes, all);
  }
  /// Merges the members' records; each gets the result in place of its own. Any memory will do. Counted is
  /// one record for each doubling of the number of ranks that know it.
  void startAgreement(int slot, const Communicator &group, int64_t *record, const RecordShape &shape) {
    for (int know = 1; know < group.size(); know *= 2)
      count(TrafficClass::Control, shape.words() * static_cast<int64_t>(sizeof(int64_t)));
    beginAgreement(slot, group, record, shape);
  }

  /// Drives the slot's operation on; true when it is complete (or there is none).
  /// Throws Error when a peer has failed.
  virtual bool poll(int slot) = 0;
  /// True if the last poll of `slot` moved bytes though it is not complete.
  bool progressed(int slot) const { return moved[slot]; }

  /// Rung when a peer did something: read its count, poll, then sleep on it.
  virtual Waker &waker() = 0;
  /// Whether to spin before sleeping: only where each rank of this host has a CPU of its own.
  virtual void setSpinning(bool) {}

  /// From here on waiting fails once neither this rank nor a peer that it can watch has got on for `limit`
  /// (0: waits for ever).
  void setStallLimit(std::chrono::milliseconds limit) { stallLimit = limit; }
  int64_t stallSeconds() const { return stallLimit.count() / 1000; }
  /// The clock of one wait. Of ranks that wait equally long the first one speaks.
  StallClock stallClock() const;
  /// Grows while peers that this rank can watch get on.
  virtual uint64_t peerBeats() const { return 0; }
  /// The ranks that the operation in `slot` waits for, as far as this engine can tell.
  virtual std::vector<int> awaited(int slot) const { return {}; }

  /// Gives up what flies, so that its memory may go; the rank is about to fail.
  virtual void abandon() {}

  /// What this rank is to throw for an error that other ranks may find as well: one of them speaks.
  virtual Error noticed(const Error &error) { return error; }

  /// Where this rank is, for the message of whoever finds it dead.
  virtual void publish(int64_t step, int64_t action) {}
  /// This rank ends with `status`: tells its peers, so that none waits for it. One whose Error is
  /// `quiet` leaves the message to a peer and waits, for 2 s at most, until that one has failed.
  virtual void fail(int status, bool quiet) {}
  /// In a signal handler: tells the peers as far as that is possible there that this rank ends with `status`,
  /// at once and by somebody's wish.
  virtual void leave(int status) {}
  /// This rank is done and nobody waits for it (collective under MPI).
  virtual void finish() {}

  /// Of any rank, as far as it is known here.
  virtual Whereabouts whereabouts(int rank) const { return {}; }

  const SentBytes &sent() const { return sentBytes; }
  /// Counts what goes to other ranks another way.
  void countSent(TrafficClass kind, int64_t bytes) { count(kind, bytes); }

  /// Blocking forms, over all ranks. `complete` drives no other slot: a rank that also receives polls both.
  void complete(int slot);
  void exchange(const void *record, int64_t bytes, void *all);
  void barrier();

protected:
  /// Rank `rank` of `size`.
  void becomeRank(int rank, int size);

  virtual void beginGather(int slot, const Communicator &, const void *slice, void *target,
                           int64_t bytes) = 0;
  virtual void beginReduce(int slot, const Communicator &, Element type, const void *whole, void *target,
                           int64_t elements, bool accumulate) = 0;
  virtual void beginAllToAll(int slot, const Communicator &, const void *source, void *target,
                             int64_t bytes) = 0;
  virtual void beginShift(int slot, const Communicator &, const void *source, void *target,
                          int64_t bytes) = 0;
  virtual void beginSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag) = 0;
  virtual void beginRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) = 0;
  virtual void beginExchange(int slot, const Communicator &, const void *record, int64_t bytes,
                             void *all) = 0;
  virtual void beginAgreement(int slot, const Communicator &, int64_t *record, const RecordShape &) = 0;

  int thisRank = 0;
  Communicator all;
  std::chrono::milliseconds stallLimit{0};
  std::array<bool, kSlots> moved{};

private:
  SentBytes sentBytes{};
  void count(TrafficClass kind, int64_t bytes) { sentBytes[static_cast<int>(kind)] += bytes; }
};

/// The memory that the ranks of one machine share: all arenas, and what they tell
/// each other. Made by the launcher before it forks, which keeps it to mark ranks
/// that died; or a file in memory, where a foreign launcher started the ranks.
class SharedGroup {
public:
  /// One arena of `arenaBytes[r]` bytes, zeroed, for each rank r.
  static std::unique_ptr<SharedGroup> create(const std::vector<int64_t> &arenaBytes);
  /// The same in a file in memory, which the caller closes; ranks of other hosts have arenas of 0 bytes.
  static std::unique_ptr<SharedGroup> createFile(const std::vector<int64_t> &arenaBytes, int &file);
  /// What another process made with the same sizes.
  static std::unique_ptr<SharedGroup> open(const std::vector<int64_t> &arenaBytes, int file);
  ~SharedGroup();

  int size() const { return worldSize; }
  /// Multiple of 4096.
  char *arena(int rank) const;

  /// In rank `rank`'s process: the engine, a `Neighbours`.
  std::unique_ptr<Engine> join(int rank);

  /// In the launcher: `rank` ended with `waitStatus` (of waitpid). True if it was done by then; else wakes
  /// all others, whose next poll throws a quiet Error of the status to end with.
  bool markEnded(int rank, int waitStatus);
  /// The first rank that failed, or -1, and the status all end with; both are written at once.
  int failedRank() const;
  int failureStatus() const;
  const Pulse &pulseOf(int rank) const;
  /// Where a rank is or was: step and action index, -1 before the first or between steps.
  int64_t stepOf(int rank) const;
  int64_t actionOf(int rank) const;

private:
  SharedGroup() = default;
  static std::unique_ptr<SharedGroup> map(const std::vector<int64_t> &arenaBytes, int file, bool fresh);
  void *mapping = nullptr;
  int64_t mappedBytes = 0;
  int worldSize = 0;
  std::vector<char *> arenas;
};

/// An engine of one rank alone.
std::unique_ptr<Engine> makeSingleEngine();

/// Opens libmpi, initializes it and joins; `libmpi` unloadable is an Error of status 1. Rank and size
/// are MPI's. Where the others do not come within `limit` the process says so, as `expectedRank`, and ends.
std::unique_ptr<Engine> joinMpi(int expectedRank, std::chrono::seconds limit);

/// Zeroed memory for the arena of a rank that shares none.
char *allocateArena(int64_t bytes);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ENGINE_H
