//===- TcpState.h - what the links between ranks are made of ----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_TCPSTATE_H
#define DSOPT_LIB_RUNTIME_COMM_TCPSTATE_H

#include "Comm/Tcp.h"

namespace dsopt::runtime {

inline constexpr int64_t kFrameBytes = 1 << 20; ///< of data in one frame, so that slots take turns
inline constexpr int64_t kTurnBytes = 8 << 20;  ///< read from one peer before the next one's turn
inline constexpr size_t kMostCredits = 64; ///< outstanding from one peer: it has fewer operations than that
inline constexpr int64_t kTextBytes = 4096;
inline constexpr uint32_t kMagic = 0x6d617264;
inline constexpr uint16_t kValues = Engine::kCommunicators;
using Clock = std::chrono::steady_clock;
/// So long the rank may compute on after a peer failed; all have to end within 10 s.
inline constexpr std::chrono::seconds kGrace(4);
/// So long a rank that failed listens on, for its peers to hear it.
inline constexpr std::chrono::milliseconds kDrain(500);
enum FrameKind : uint8_t { Credit, Data, FailFrame, ByeFrame };

/// What precedes everything on the wire. An operation is named by space and number: the collectives of a
/// communicator are counted, values have tags.
struct TcpLinks::Frame {
  uint32_t magic = kMagic;
  uint8_t frame = Credit, kind = 0;
  uint16_t space = kValues; ///< or the communicator's number
  uint64_t number = 0;
  int64_t total = 0;  ///< bytes of the operation between these two ranks
  int64_t offset = 0; ///< Data: of its first byte; Credit: how far the other may send
  int64_t length = 0; ///< bytes that follow
  bool names(const Frame &other) const { return space == other.space && number == other.number; }
};

/// One peer's share of an operation.
struct TcpLinks::Part {
  int peer = 0;
  int64_t index = 0; ///< among the members
  const char *source = nullptr;
  int64_t allowed = 0, sent = 0, flushed = 0; ///< of what goes there
  int64_t received = 0;                       ///< of what comes from there
};

struct TcpLinks::Operation {
  std::atomic<int> state{Idle};
  Transfer transfer;
  Frame name;
  std::vector<Part> parts; ///< of the other members
  int64_t ring = 0;        ///< Reduce: bytes of staging for each member
  int64_t added = 0, allowed = 0;
  bool live = false; ///< the thread has it
  bool isDone(const Part *part) const {
    return !part || ((!transfer.sends || part->flushed == transfer.bytes) &&
                     (!transfer.receives || part->received == transfer.bytes));
  }
  Part *part(int peer) {
    for (Part &part : parts)
      if (part.peer == peer)
        return &part;
    return nullptr;
  }
};

struct TcpLinks::Link {
  int rank = 0;
  Socket socket;
  bool open = true, bye = false;
  // What is being sent: `out` first (credits or a header), then `payload`; then what is pending.
  std::string out, pending;
  size_t outDone = 0;
  const char *payload = nullptr;
  int64_t payloadLeft = 0;
  Operation *sending = nullptr;
  bool blocked = false;
  int turn = 0; ///< the slot that comes next
  // What is being received.
  Frame head;
  size_t headDone = 0;
  int64_t bodyLeft = 0;
  Operation *receiving = nullptr;
  std::string text;
  std::vector<Frame> credits; ///< for operations that this rank has not started
};

inline std::string calledRank(int rank, const std::vector<std::string> &names) {
  return "rank " + std::to_string(rank) + " on " + names[rank];
}

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_TCPSTATE_H
