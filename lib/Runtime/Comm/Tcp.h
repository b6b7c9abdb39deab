//===- Tcp.h - the wire over sockets ----------------------------*- C++ -*-===//
//
// A thread of its own moves all bytes of a Wire, so that communication goes on
// while the rank computes; slots are handed over to it and back by one atomic word
// each.
//
// When a peer is gone, and when it is only slow: a process that ends closes its
// connections, which the kernel says at once. A host that is gone or cut off says
// nothing. A process that is stopped (a debugger, SIGSTOP, swapping) says nothing
// either, but its kernel still acknowledges what arrives, and probes of a window
// that is full. So where nothing came from a peer for a while, its kernel is asked
// about (TCP_INFO): no acknowledgement for kUnanswered although something waits for one
// means that the host is gone; heartbeats see to it that something does. Anything
// else is left to whoever watches the run's progress. TCP_USER_TIMEOUT would not do:
// it counts the time of a full window too. Against a full window the kernel probes at
// growing distances, so a host that goes while its rank is stopped is found later.
//
// Rank 0 goes on listening where the ranks met, for nothing but to be found there: whoever
// loses its link to rank 0 sees in that whether rank 0 is gone, too.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_TCP_H
#define DSOPT_LIB_RUNTIME_COMM_TCP_H

#include "Comm/Rendezvous.h"
#include "Comm/Wire.h"
#include "dsopt/Runtime/Error.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dsopt::runtime {

class TcpLinks {
public:
  /// `ring` is called when an operation is complete or a peer has failed.
  TcpLinks(int rank, Met met, std::function<void()> ring);
  ~TcpLinks();

  void setStaging(char *memory, int64_t bytes);
  /// The slot's next operation, to be filled and started; of a collective it gets the next number.
  Transfer &prepare(int slot, Transfer::Kind kind, const Communicator *group);
  void start(int slot);
  /// True when the slot's operation is complete.
  bool poll(int slot);
  /// Throws what a peer's failure means for this rank; nothing touches the operations' memory any more.
  void check();
  /// Gives up what flies: its memory may go. From then on this rank can only fail.
  void abandon();
  void publish(int64_t newStep, int64_t newAction) {
    step.store(newStep, std::memory_order_relaxed);
    action.store(newAction, std::memory_order_relaxed);
  }
  Whereabouts whereabouts(int peer) const;
  /// What this rank is to throw for an error that others may find as well.
  Error noticed(const Error &error);
  /// Uses nothing that a signal handler may not.
  void fail(int status, bool quiet);
  void finish();

private:
  enum State : int { Idle, Posted, Complete };
  struct Slot {
    std::atomic<int> state{Idle};
    Transfer transfer;
    bool live = false; ///< the thread has it
  };
  /// What a peer said last, for the rank to read.
  struct Heard {
    std::atomic<int64_t> step{-1}, action{-1}, at{0};
  };

  void work();
  void takeRequests();
  void decide();
  void turnAway();
  bool sendAll();
  bool send(int peer);
  void receive(int peer);
  void lookAfter(Wire::Time now);
  void watch(int peer, bool writes);
  void drop(int peer);
  bool isOver(Wire::Time now);
  void wake();

  const int rank;
  std::function<void()> ring;
  std::vector<Socket> sockets; ///< by rank
  std::vector<char> blocked;   ///< by rank: the socket takes no more for now
  Socket bell, events;
  Socket listener;            ///< of rank 0
  Address first;              ///< where that is, for the others
  std::unique_ptr<Wire> wire; ///< the thread's
  std::vector<int> unsent;    ///< peers whose turn is over
  std::vector<Slot> slots;
  std::vector<uint64_t> sequences; ///< of collectives, by number of the communicator
  std::vector<Heard> heard;        ///< by rank
  std::atomic<int64_t> step{-1}, action{-1};

  /// The first failure: written by the thread before `failing`, read after it.
  Wire::Failure failure;
  std::atomic<bool> failing{false}, seen{false};

  // What the rank asks of the thread besides operations.
  enum Request : int { None, Bye, Fail };
  std::atomic<int> request{None};
  int failStatus = 0;
  Wire::Failure noticing; ///< written by the rank before `notices`
  std::atomic<bool> notices{false};
  std::atomic<bool> said{false}, quit{false};
  std::atomic<bool> abandoning{false}, dropped{false};
  bool ending = false; ///< the thread's: the wire has been told
  Wire::Time failedAt, endedAt;
  std::thread thread;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_TCP_H
