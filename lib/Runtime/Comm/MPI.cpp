//===- MPI.cpp - ranks joined by Open MPI ----------------------------------===//
//
// libmpi is opened only here and only when asked: types come from <mpi.h>,
// functions and predefined handles by name. Reductions exchange a chunk of each
// slice all-to-all through the program's staging buffer and add it at the owner
// along the canonical tree, so bits and counted bytes are those of shared memory.
//
//===----------------------------------------------------------------------===//

#include "Comm/Rounds.h"
#include "Core/Futex.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Process.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace dsopt::runtime {
namespace {

/// The functions of libmpi that are used.
struct Library {
  decltype(&MPI_Initialized) initialized;
  decltype(&MPI_Init_thread) init;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Comm_rank) commRank;
  decltype(&MPI_Comm_size) commSize;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Testall) testall;
  decltype(&MPI_Abort) abort;
  MPI_Comm world;
  MPI_Datatype byte;
};

Library openLibrary() {
  const char *file = "libmpi.so.40";
  void *handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    throw Error(StatusInput,
                std::string("started under MPI, but Open MPI's ") + file + " cannot be loaded: " + dlerror());
  auto symbol = [&](const char *name) {
    void *address = dlsym(handle, name);
    if (!address)
      throw Error(StatusInput, std::string(file) + " has no " + name + ": expected Open MPI 4.1");
    return address;
  };
  Library mpi;
  auto load = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol(name));
  };
  load(mpi.initialized, "MPI_Initialized");
  load(mpi.init, "MPI_Init_thread");
  load(mpi.finalize, "MPI_Finalize");
  load(mpi.commRank, "MPI_Comm_rank");
  load(mpi.commSize, "MPI_Comm_size");
  load(mpi.isend, "MPI_Isend");
  load(mpi.irecv, "MPI_Irecv");
  load(mpi.testall, "MPI_Testall");
  load(mpi.abort, "MPI_Abort");
  mpi.world = reinterpret_cast<MPI_Comm>(symbol("ompi_mpi_comm_world"));
  mpi.byte = reinterpret_cast<MPI_Datatype>(symbol("ompi_mpi_byte"));
  return mpi;
}

constexpr int64_t kMessage = 64 << 20;            ///< bytes of one message at most
constexpr int kValueTag = Engine::kCommunicators; ///< those before it are communicators'
constexpr int kValueTags = 1 << 22;               ///< UCX leaves MPI 23 bits
constexpr int kNumbered = kValueTags / 2;         ///< the first of them are numbers

/// While it lives the process may take so long: MPI waits for ranks that do not come for ever.
class TimeLimit {
public:
  TimeLimit(std::chrono::milliseconds limit, const std::string &text) {
    thread = startThread([this, limit, text] {
      std::unique_lock lock(mutex);
      if (ended.wait_for(lock, limit, [this] { return done; }))
        return;
      std::fprintf(stderr, "dsopt: error: %s\n", text.c_str());
      _exit(StatusFailure);
    });
  }
  ~TimeLimit() {
    {
      std::lock_guard lock(mutex);
      done = true;
    }
    ended.notify_one();
    thread.join();
  }
  TimeLimit(const TimeLimit &) = delete;

private:
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::thread thread;
};

class MpiEngine final : public Engine {
public:
  MpiEngine(const Library &library, int expectedRank, std::chrono::seconds limit) : mpi(library) {
    int done = 0, provided = 0;
    mpi.initialized(&done);
    if (!done) {
      // Of ranks that wait equally long the first one speaks, and mpirun ends the others.
      std::chrono::milliseconds turn(250 * std::min(std::max(expectedRank, 0), 20));
      TimeLimit start(limit + turn, "rank " + std::to_string(expectedRank) + " has waited " +
                                        std::to_string(limit.count()) +
                                        " s for the other ranks to come to MPI_Init (DSOPT_LAUNCH_TIMEOUT)");
      SignalsHeld held;
      if (mpi.init(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        throw Error(StatusFailure, "MPI_Init_thread failed");
    }
    int rank = 0, size = 1;
    mpi.commRank(mpi.world, &rank);
    mpi.commSize(mpi.world, &size);
    becomeRank(rank, size);
    for (Operation &op : operations)
      op.requests.resize(2 * size);
    parts.resize(size);
  }
  const char *name() const override { return "MPI"; }
  bool needsStaging() const override { return true; }
  void setStaging(char *memory, int64_t bytes) override {
    staging = memory;
    stagingBytes = bytes;
  }

  void addTags(int peer, bool sends, const std::vector<uint64_t> &tags) override {
    std::vector<uint64_t> &all = numbered[{peer, sends}];
    all.insert(all.end(), tags.begin(), tags.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() > kNumbered)
      throw Error(StatusInput, "the program hands on " + std::to_string(all.size()) +
                                   " values between two ranks, expected at most " +
                                   std::to_string(kNumbered) + ", for which MPI has tags");
  }

  bool poll(int slot) override {
    Operation &op = operations[slot];
    moved[slot] = false;
    while (op.kind != Kind::None) {
      if (op.active) {
        int complete = 0;
        mpi.testall(op.active, op.requests.data(), &complete, MPI_STATUSES_IGNORE);
        if (!complete)
          return false;
        op.active = 0;
        moved[slot] = true;
      }
      if (op.kind == Kind::Agreement) {
        nextRound(op);
        own.ring();
        continue;
      }
      if (op.kind == Kind::Reduce)
        addChunk(op);
      op.offset += std::min(op.chunk, op.bytes - op.offset);
      if (op.offset >= op.bytes)
        op.kind = Kind::None;
      else
        issue(op);
      own.ring();
    }
    return true;
  }

  Waker &waker() override { return own; }
  void fail(int status, bool quiet) override {
    // Whoever speaks for all must come to it before MPI kills it.
    if (quiet)
      usleep(2000000);
    mpi.abort(mpi.world, status);
  }
  void finish() override {
    // MPI would wait for the others for ever.
    barrier();
    mpi.finalize();
  }

private:
  void beginGather(int slot, const Communicator &group, const void *slice, void *target,
                   int64_t bytes) override {
    Operation &op = begin(slot, Kind::Gather, &group, bytes);
    op.source = static_cast<const char *>(slice);
    op.target = static_cast<char *>(target);
    op.chunk = kMessage;
    char *own = op.target + group.self * bytes;
    if (own != slice)
      std::memmove(own, slice, bytes);
    issue(op);
  }
  void beginReduce(int slot, const Communicator &group, Element type, const void *whole, void *target,
                   int64_t elements, bool accumulate) override {
    Operation &op = begin(slot, Kind::Reduce, &group, elements * bytesOf(type));
    op.source = static_cast<const char *>(whole);
    op.target = static_cast<char *>(target);
    op.type = type;
    op.accumulate = accumulate;
    op.chunk = std::min(kMessage, stagingBytes / group.size() / 64 * 64);
    if (group.size() > 1 && op.chunk == 0)
      throw Error(StatusFailure, "the program has no staging buffer for MPI's reductions");
    if (group.size() == 1)
      op.chunk = kMessage;
    issue(op);
  }
  void beginAllToAll(int slot, const Communicator &group, const void *source, void *target,
                     int64_t bytes) override {
    Operation &op = begin(slot, Kind::AllToAll, &group, bytes);
    op.source = static_cast<const char *>(source);
    op.target = static_cast<char *>(target);
    op.chunk = kMessage;
    std::memcpy(op.target + group.self * bytes, op.source + group.self * bytes, bytes);
    issue(op);
  }
  void beginShift(int slot, const Communicator &group, const void *source, void *target,
                  int64_t bytes) override {
    Operation &op = begin(slot, Kind::Shift, &group, bytes);
    op.source = static_cast<const char *>(source);
    op.target = static_cast<char *>(target);
    op.chunk = kMessage;
    if (group.size() == 1)
      std::memcpy(target, source, bytes);
    issue(op);
  }
  void beginExchange(int slot, const Communicator &group, const void *record, int64_t bytes,
                     void *all) override {
    Operation &op = begin(slot, Kind::Exchange, &group, bytes);
    op.source = static_cast<const char *>(record);
    op.target = static_cast<char *>(all);
    op.chunk = kMessage;
    std::memcpy(op.target + group.self * bytes, record, bytes);
    issue(op);
  }
  void beginSend(int slot, int peer, const void *value, int64_t bytes, uint64_t tag) override {
    Operation &op = begin(slot, Kind::Send, nullptr, bytes);
    op.peer = peer;
    op.source = static_cast<const char *>(value);
    op.chunk = kMessage;
    op.tag = tag;
    issue(op);
  }
  void beginRecv(int slot, int peer, void *value, int64_t bytes, uint64_t tag) override {
    Operation &op = begin(slot, Kind::Recv, nullptr, bytes);
    op.peer = peer;
    op.target = static_cast<char *>(value);
    op.chunk = kMessage;
    op.tag = tag;
    issue(op);
  }
  void beginAgreement(int slot, const Communicator &group, int64_t *record,
                      const RecordShape &shape) override {
    Operation &op = begin(slot, Kind::Agreement, &group, 0);
    op.rounds.startAgreement(group, record, shape);
    op.round = -1;
    nextRound(op);
  }

  enum class Kind { None, Gather, Reduce, AllToAll, Shift, Exchange, Agreement, Send, Recv };
  struct Operation {
    Kind kind = Kind::None;
    const Communicator *group = nullptr; ///< of a collective
    int peer = 0;                        ///< of a value
    const char *source = nullptr;
    char *target = nullptr;
    int64_t bytes = 0, offset = 0, chunk = 0;
    Element type = Element::F32;
    bool accumulate = false;
    uint64_t tag = 0;
    Rounds rounds; ///< of an agreement
    int round = 0;
    int active = 0; ///< requests in flight
    std::vector<MPI_Request> requests;
  };

  Operation &begin(int slot, Kind kind, const Communicator *group, int64_t bytes) {
    Operation &op = operations[slot];
    op.kind = kind;
    op.group = group;
    op.bytes = bytes;
    op.offset = 0;
    op.active = 0;
    return op;
  }
  /// Values that fly at once have numbers of their own. Others go one after the other: theirs may be equal.
  int valueTag(const Operation &op) const {
    if (auto found = numbered.find({op.peer, op.kind == Kind::Send}); found != numbered.end()) {
      const std::vector<uint64_t> &all = found->second;
      auto known = std::lower_bound(all.begin(), all.end(), op.tag);
      if (known != all.end() && *known == op.tag)
        return kValueTag + static_cast<int>(known - all.begin());
    }
    return kValueTag + kNumbered + static_cast<int>((op.tag ^ op.tag >> 32) % (kValueTags - kNumbered));
  }
  void send(Operation &op, const char *from, int64_t size, int peer, int tag) {
    mpi.isend(from, static_cast<int>(size), mpi.byte, peer, tag, mpi.world, &op.requests[op.active++]);
  }
  void receive(Operation &op, char *to, int64_t size, int peer, int tag) {
    mpi.irecv(to, static_cast<int>(size), mpi.byte, peer, tag, mpi.world, &op.requests[op.active++]);
  }
  /// Starts the messages of the chunk at `offset`.
  void issue(Operation &op) {
    int64_t size = std::min(op.chunk, op.bytes - op.offset);
    if (op.kind == Kind::Send)
      return send(op, op.source + op.offset, size, op.peer, valueTag(op));
    if (op.kind == Kind::Recv)
      return receive(op, op.target + op.offset, size, op.peer, valueTag(op));
    const Communicator &group = *op.group;
    int count = group.size();
    if (op.kind == Kind::Shift) {
      if (count > 1) {
        receive(op, op.target + op.offset, size, group.ranks[(group.self + count - 1) % count], group.number);
        send(op, op.source + op.offset, size, group.ranks[(group.self + 1) % count], group.number);
      }
      return;
    }
    bool parts = op.kind == Kind::Reduce || op.kind == Kind::AllToAll;
    for (int i = 1; i < count; ++i) {
      int to = (group.self + i) % count, from = (group.self + count - i) % count;
      char *place =
          op.kind == Kind::Reduce ? staging + from * op.chunk : op.target + from * op.bytes + op.offset;
      receive(op, place, size, group.ranks[from], group.number);
      send(op, op.source + (parts ? to * op.bytes : 0) + op.offset, size, group.ranks[to], group.number);
    }
  }
  /// Takes what a round brought and starts the next one.
  void nextRound(Operation &op) {
    if (op.round >= 0)
      op.rounds.take(op.round);
    if (++op.round == op.rounds.count()) {
      op.kind = Kind::None;
      return;
    }
    const Rounds::Round &round = op.rounds.round(op.round);
    if (round.from >= 0)
      receive(op, op.rounds.incoming(op.round), round.receives, round.from, op.group->number);
    if (round.to >= 0)
      send(op, op.rounds.outgoing(op.round), round.sends, round.to, op.group->number);
  }
  void addChunk(Operation &op) {
    int64_t size = std::min(op.chunk, op.bytes - op.offset);
    int count = op.group->size();
    for (int i = 0; i < count; ++i)
      parts[i] = i == op.group->self ? op.source + i * op.bytes + op.offset : staging + i * op.chunk;
    treeSum(op.type, parts.data(), count, op.target + op.offset, size / bytesOf(op.type), op.accumulate);
  }

  Library mpi;
  char *staging = nullptr;
  int64_t stagingBytes = 0;
  // MPI rings nobody: whoever waits polls, at growing distances.
  Waker::Bell bell{};
  Waker own{bell, /*shared=*/false, {/*spins=*/0, /*yields=*/2000, /*microseconds=*/50, /*polls=*/true}};
  Operation operations[kSlots];
  std::vector<const void *> parts;
  std::map<std::pair<int, bool>, std::vector<uint64_t>>
      numbered; ///< tags by peer and whether sent, ascending
};

} // namespace

std::unique_ptr<Engine> joinMpi(int expectedRank, std::chrono::seconds limit) {
  return std::make_unique<MpiEngine>(openLibrary(), expectedRank, limit);
}

} // namespace dsopt::runtime
