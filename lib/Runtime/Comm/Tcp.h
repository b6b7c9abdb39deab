//===- Tcp.h - operations between ranks over sockets ------------*- C++ -*-===//
//
// A thread of its own moves all bytes, so that communication goes on while the
// rank computes; slots are handed over to it and back by one atomic word each.
// Nothing is sent before its receiver has said how much it may get (a credit): a
// peer's bytes go straight to where they belong, and nothing is buffered but a
// few frames of credits. Reductions come through the program's staging buffer and
// are added at the owner along the canonical tree.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_TCP_H
#define DSOPT_LIB_RUNTIME_COMM_TCP_H

#include "Comm/Sockets.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dsopt::runtime {

/// What a slot does.
struct Transfer {
  enum Kind : uint8_t { Gather, Reduce, AllToAll, Exchange, Value };
  Kind kind = Gather;
  bool sends = true, receives = true;  ///< a value: one of them
  const Communicator *group = nullptr; ///< of a collective
  int peer = 0;                        ///< of a value
  const char *source = nullptr;
  char *target = nullptr;
  int64_t bytes = 0; ///< of each rank's part
  Element type = Element::F32;
  bool accumulate = false;
  uint64_t tag = 0; ///< of a value
};

class TcpLinks {
public:
  /// `ring` is called when an operation is complete or a peer has failed. `names` are the ranks' hosts.
  TcpLinks(int rank, std::vector<Socket> links, std::vector<std::string> names, std::function<void()> ring);
  ~TcpLinks();

  void setStaging(char *memory, int64_t bytes) {
    staging = memory;
    stagingBytes = bytes;
  }
  void start(int slot, const Transfer &transfer);
  /// True when the slot's operation is complete.
  bool poll(int slot);
  /// Throws what a peer's failure means for this rank; nothing touches the operations' memory any more.
  void check();
  /// Gives up what flies: its memory may go. From then on this rank can only fail.
  void abandon();
  void publish(int64_t newStep) { step.store(newStep, std::memory_order_relaxed); }
  /// Uses nothing that a signal handler may not.
  void fail(int status, bool quiet);
  void finish();

private:
  struct Frame;
  struct Part;
  struct Operation;
  struct Link;
  enum State : int { Idle, Posted, Complete };

  void work();
  void adopt(int slot);
  void send(Link &link);
  bool nextFrame(Link &link);
  void receive(Link &link);
  void handle(Link &link);
  void handleFailure(Link &link);
  char *placeOf(Operation &op, Part &part, int64_t &room) const;
  void addStaged(Operation &op);
  void giveCredit(Operation &op, Part &part);
  void completeIfDone(Operation &op);
  void control(Link &link, const Frame &frame, const std::string &text = "");
  void takeCredit(Link &link, const Frame &frame);
  void lost(Link &link, const std::string &why);
  void failed(int status, int about, bool loud, const std::string &text);
  void say(bool bye);
  void drop();
  void wake();

  int thisRank;
  std::vector<std::string> names;
  std::function<void()> ring;
  std::vector<std::unique_ptr<Link>> links; ///< by rank, null for this one
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<uint64_t> sequences;   ///< of collectives, by number of the communicator
  std::vector<const void *> sources; ///< of an addition
  char *staging = nullptr;
  int64_t stagingBytes = 0;
  std::atomic<int64_t> step{-1};

  // The first failure: written by the thread before `failing`, read after it.
  struct Failure {
    int status = 0, about = 0;
    bool loud = false;
    std::string text;
  } failure;
  std::atomic<bool> failing{false}, seen{false};

  // What the rank asks of the thread besides operations.
  enum Request : int { None, Bye, Fail };
  std::atomic<int> request{None};
  int failStatus = 0;
  std::atomic<bool> said{false}, quit{false};
  std::atomic<bool> abandoning{false}, dropped{false};
  bool ending = false; ///< what peers do does not matter any more
  Socket bell;
  std::thread thread;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_TCP_H
