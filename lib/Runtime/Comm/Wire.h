//===- Wire.h - operations between ranks as bytes of links ------*- C++ -*-===//
//
// What one rank says to the others and makes of what they say, apart from
// sockets, threads and clocks: bytes and time go in, bytes come out. The same
// calls give the same results, so a test runs many ranks in one process and cuts,
// delays and damages what lies between them (WireTest), and a fuzzer feeds it anything.
//
// Nothing large is sent before its receiver has said how much it may get (a
// credit): a peer's bytes go straight to where they belong. Small records of exchanges and
// agreements go at once and wait at the receiver until it starts the operation.
// Reductions come through the program's staging buffer and are added at the owner
// along the canonical tree. Every frame is checked before what it holds counts.
//
// Peers are alive as long as their links are (Tcp.h says what closes one). Every
// kHeartbeat each says where it is in the run.
//
// Links that the program does not need may be absent: an operation that needs one is a
// failure, and what becomes of a rank reaches the others through those between.
//
// Of a failure one rank speaks. Who fails by itself knows why, says it, and tells its peers
// that it is said. What others notice (a rank that is gone, bytes that arrive damaged) several of
// them may: the first rank that is left says it, all others tell it and wait until they hear that
// it is said. Where only the link between rank 0 and this one broke nobody may be left to
// hear that from; then it counts whether rank 0 can still be reached at all.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_WIRE_H
#define DSOPT_LIB_RUNTIME_COMM_WIRE_H

#include "Comm/Frame.h"
#include "Comm/Rounds.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What a slot does.
struct Transfer {
  enum Kind : uint8_t { Gather, Reduce, AllToAll, Exchange, Agreement, Value };
  /// What goes to or comes from a rank; at most one each way.
  struct Piece {
    int peer;
    const char *source;
    char *target;
    int64_t bytes;
  };
  Kind kind = Gather;
  uint64_t number = 0; ///< of a collective: how many its communicator had before; of a value: its tag
  const Communicator *group = nullptr; ///< of a collective
  std::vector<Piece> sends, receives;  ///< Gather, AllToAll, Value
  // Reduce: `bytes` for each member at `source`; Exchange: `bytes` of each at `target`, its own there.
  const char *source = nullptr;
  char *target = nullptr;
  int64_t bytes = 0;
  Element type = Element::F32;
  bool accumulate = false;
  // Agreement.
  int64_t *record = nullptr;
  RecordShape shape;

  /// Back to nothing, with its memory kept.
  void reset(Kind newKind, const Communicator *newGroup);
};

class Wire {
public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int64_t kFrameBytes = 1 << 20;    ///< of data in one frame, so that slots take turns
  static constexpr int64_t kReduceBytes = 128 << 10; ///< of a reduction, so that additions start early
  static constexpr int64_t kEagerBytes = 64 << 10;   ///< of a record that is sent without a credit
  static constexpr std::chrono::milliseconds kHeartbeat{2000};
  /// So long a rank waits for another one to say what both have noticed, and longer for each rank before
  /// it: of those that wait in vain the first one speaks.
  static constexpr std::chrono::milliseconds kUnsaid{1000}, kUnsaidTurn{250};
  static constexpr int kUnsaidTurns = 10;

  /// The first failure: status, about which rank, whether this rank speaks of it.
  struct Failure {
    int status = 0, about = 0;
    bool loud = false;
    std::string text;
  };
  /// Where bytes go.
  struct Room {
    char *place;
    int64_t bytes;
  };
  /// What is sent next: a header, then what follows it.
  struct Bytes {
    const char *head = nullptr, *body = nullptr;
    int64_t headBytes = 0, bodyBytes = 0;
    int64_t size() const { return headBytes + bodyBytes; }
  };

  /// `linked[r]`: there is a link to rank r. `names` are the ranks' hosts. `completed(slot)` is called as
  /// soon as a slot's operation is complete.
  Wire(int rank, std::vector<std::string> names, const std::vector<bool> &linked, Time now,
       std::function<void(int)> completed);
  ~Wire();

  void setStaging(char *memory, int64_t bytes) {
    staging = memory;
    stagingBytes = bytes;
  }
  /// Where this rank is in the run, for messages and heartbeats.
  void setPlace(int64_t newStep, int64_t newAction) {
    step = newStep;
    action = newAction;
  }
  /// Does what `transfer` says, which stays until the slot is complete.
  void start(int slot, const Transfer &transfer);
  /// Forgets all operations, whose memory may go then. This rank is about to fail.
  void drop();
  /// This rank is done, or fails with `status`: tells its peers. Nothing else is said afterwards.
  void end(bool bye, int status);
  /// What comes from a peer is not looked at: it may be anything.
  void ignore(int peer);
  /// This rank has noticed what others may notice, too.
  void notice(int status, int about, const std::string &text);
  /// Something is wrong, and it is not clear yet who says so: `decide` is to be called until it is.
  bool undecided() const { return state == Noticed && !ending; }
  void decide(Time now);
  /// To decide, it has to be known whether rank 0 can be reached, though not through its link any more.
  bool asksForFirst() const { return undecided() && first == Unknown && isLost(0); }
  void firstIsThere(bool there) { first = there ? There : Gone; }
  /// What went wrong, once it is clear who says so.
  const Failure *failure() const { return state == Decided ? &failed : nullptr; }

  int size() const { return static_cast<int>(links.size()); }
  bool isOpen(int peer) const;
  /// A peer that may have bytes to send since it was last asked for; -1: none.
  int nextReady();
  /// What goes to a peer next; empty: nothing now.
  Bytes outgoing(int peer);
  void sent(int peer, int64_t bytes);
  /// True if nothing waits to be sent to the peer that must be.
  bool flushed(int peer) const;
  /// Where the next bytes of a peer belong; never empty for an open link.
  Room incoming(int peer);
  /// Bytes have been written to that place.
  void received(int peer, int64_t bytes, Time now);
  /// The same for bytes that lie elsewhere.
  void feed(int peer, const char *data, int64_t bytes, Time now);
  /// The link to a peer is gone.
  void closed(int peer, const std::string &why);
  /// A call for it failed: what was wrong may still reach the peer. False if the link is given up.
  bool broke(int peer, const std::string &why);
  /// Heartbeats; called at least twice in kHeartbeat.
  void tick(Time now);

  /// When a peer was last heard, and where it said it was.
  Time heardAt(int peer) const;
  Whereabouts saidBy(int peer) const;

  /// Frames of operations so far, for tests of how much is said.
  int64_t framesSent() const { return frames; }

private:
  struct Out;
  struct In;
  struct Operation;
  struct Link;

  Link *linkOf(int peer, const char *what);
  void addOut(Operation &op, int peer, const char *source, int64_t bytes, int round);
  void addIn(Operation &op, int peer, char *target, int64_t bytes, int64_t member, int round);
  void adopt(Operation &op);
  void startRounds(Operation &op);
  void advance(Operation &op);
  void outDone(Operation &op);
  void inDone(Operation &op, In &in);
  void completeIfDone(Operation &op);
  void addStaged(Operation &op);
  void giveCredit(Operation &op, const In &in);
  void takeCredit(Link &link, const Frame &frame);
  void control(Link &link, Frame frame, const std::string &text = "");
  void makeReady(Link &link);
  bool nextFrame(Link &link);
  void handle(Link &link);
  void handleData(Link &link);
  void handleBody(Link &link);
  void handleFailure(Link &link);
  void frameReceived(Link &link);
  void tellFailure(bool said);
  void decided(bool loud);
  bool isLost(int peer) const;
  bool isDone(int peer) const;
  bool mismatch(const Operation &op, const Link &link, const Frame &frame, int64_t expected);
  Room placeOf(const Operation &op, const In &in) const;
  void lost(Link &link, const std::string &why);
  void unreachable(const Link &link, const std::string &why);
  void distrust(Link &link, const std::string &what);
  std::string inStep() const;

  int thisRank;
  std::vector<std::string> names;
  std::function<void(int)> completed;
  std::vector<std::unique_ptr<Link>> links; ///< by rank, null where there is none
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<int> ready; ///< peers to ask for bytes
  std::vector<const void *> sources;
  std::vector<char> sink; ///< of what nobody wants any more
  char *staging = nullptr;
  int64_t stagingBytes = 0;
  int64_t step = -1, action = -1;
  int64_t frames = 0;
  enum { Fine, Noticed, Decided } state = Fine;
  Failure failed;                                ///< unless all is fine
  Time noticedAt{};                              ///< as far as `decide` was told
  enum { Unknown, There, Gone } first = Unknown; ///< rank 0, whose link is lost
  bool dropped = false, ending = false;          ///< ending: what peers do does not matter any more
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_WIRE_H
