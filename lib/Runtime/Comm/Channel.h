//===- Channel.h - a connection that both sides proved ----------*- C++ -*-===//
//
// Two processes show each other that they know one key, without saying it, and
// then exchange packets of which each proves where and when it was sent. Bytes go
// in and bytes come out: whoever owns the socket moves them.
//
//   caller -> listener   magic, number of the job, nonce
//   listener -> caller   magic, 'C', nonce                  ('E': another job is here)
//   caller -> listener   HMAC(key, "caller", both nonces)
//   listener -> caller   'Y', HMAC(key, "listener", both nonces)   ('N': that is not my key)
//
// The caller proves first: whoever only knocks learns nothing that he could try
// keys on. Packets follow, either way: kind, length, bytes, and the HMAC of these,
// of the direction and of their number, under a key that the nonces make.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_CHANNEL_H
#define DSOPT_LIB_RUNTIME_COMM_CHANNEL_H

#include "Comm/Packet.h"

#include <string>
#include <string_view>

namespace dsopt::runtime {

class Channel {
public:
  enum Side : char { Caller, Listener };
  enum Fault { None, NoRank, OtherVersion, OtherJob, OtherKey, Damaged };
  struct Message {
    uint32_t kind = 0;
    std::string bytes;
  };
  /// Packets of the other side are at most `limit` bytes long. `nonce` is kProofBytes that nobody knew.
  Channel(Side side, std::string key, uint64_t job, std::string nonce, size_t limit);

  /// How many bytes complete what is being received: no more are to be read, the connection may have
  /// another owner behind them.
  size_t wants() const;
  /// Takes at most `wants()` bytes.
  void receive(std::string_view bytes);
  /// True with the next packet.
  bool next(Message &message);
  /// Once proven.
  void send(uint32_t kind, const Packet &packet);

  /// What the other side is to get; the owner takes it out.
  std::string out;

  bool proven() const { return state == Head || state == Body; }
  Fault fault() const { return wrong; }

private:
  enum State { Greeting, Answer, Proof, Verdict, Counterproof, Head, Body };
  void complete();
  void greet();
  void answer();
  void judge();
  void expect(State newState, size_t bytes);
  void fail(Fault fault) { wrong = fault; }
  std::string proofOf(const char *who) const;
  std::string tagOf(Side sender, uint64_t number, std::string_view frame) const;

  Side side;
  State state = Greeting;
  std::string key, nonce, otherNonce;
  uint64_t job;
  size_t limit, expected = 0;
  std::string received; ///< of what is expected
  std::string head;     ///< of the packet whose body comes
  uint64_t sentPackets = 0, receivedPackets = 0;
  bool ready = false;
  Message message;
  Fault wrong = None;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_CHANNEL_H
