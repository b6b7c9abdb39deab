//===- WireState.h - what a wire is made of ---------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_WIRESTATE_H
#define DSOPT_LIB_RUNTIME_COMM_WIRESTATE_H

#include "Comm/Wire.h"

namespace dsopt::runtime {

/// Credits and records that a peer has sent ahead: it has fewer operations than that.
inline constexpr size_t kMostAhead = 64;
inline constexpr int64_t kTextBytes = 4096;

/// What goes to one peer.
struct Wire::Out {
  int peer = 0;
  const char *source = nullptr;
  int64_t bytes = 0, allowed = 0, sent = 0, flushed = 0;
  int round = -1; ///< of an operation in rounds; its source is not there before it begins
};

/// What comes from one peer.
struct Wire::In {
  int peer = 0;
  char *target = nullptr;
  int64_t bytes = 0, allowed = 0, received = 0;
  int64_t member = 0; ///< Reduce: whose staging it goes to
  int round = -1;
  bool eager() const { return round >= 0 && bytes <= kEagerBytes; }
};

struct Wire::Operation {
  int slot = 0;
  bool live = false;
  const Transfer *transfer = nullptr;
  Frame name;
  std::vector<Out> outs;
  std::vector<In> ins;
  std::vector<int> outOf, inOf; ///< by peer, -1: none
  size_t open = 0;              ///< of these that are not done
  // Reduce: bytes of staging for each member, of one addition, added so far and to be added next; how many
  // peers have sent that.
  int64_t ring = 0, block = 0, added = 0, next = 0;
  size_t arrived = 0;
  Rounds rounds;
  int round = 0;             ///< the one in progress
  std::vector<char> taken;   ///< rounds whose bytes are there
  std::vector<int> roundOut; ///< index of a round's part, -1: none
  std::vector<int> roundIn;

  Out *out(int peer) { return live && outOf[peer] >= 0 ? &outs[outOf[peer]] : nullptr; }
  In *in(int peer) { return live && inOf[peer] >= 0 ? &ins[inOf[peer]] : nullptr; }
  bool collective() const { return name.space != Frame::kValues; }
};

struct Wire::Link {
  int rank = 0;
  bool open = true, bye = false, queued = false;
  bool deaf = false;   ///< what comes cannot be made sense of any more; the peer still listens
  bool broken = false; ///< a call has failed
  // What is being sent: `out` first (control frames or a header), then `payload`; then what is pending.
  std::string out, pending, kept;
  size_t outDone = 0;
  const char *payload = nullptr;
  int64_t payloadLeft = 0;
  Operation *sending = nullptr;
  int turn = 0; ///< the slot that comes next
  // What is being received.
  Frame head;
  size_t headDone = 0;
  int64_t bodyDone = 0;
  Operation *receiving = nullptr;
  XXH3_state_t check;
  std::string text; ///< a body that belongs to no operation, or to none yet
  // For operations that this rank has not started.
  std::vector<Frame> credits;
  struct Early {
    Frame frame;
    std::string data;
  };
  std::vector<Early> early;
  Time lastHeard, lastBeat;
  Whereabouts said;
};

inline std::string calledRank(int rank, const std::vector<std::string> &names) {
  return "rank " + std::to_string(rank) + " on " + names[rank];
}

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_WIRESTATE_H
