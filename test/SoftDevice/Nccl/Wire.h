//===- Wire.h - what the ranks of a communicator send each other *- C++ -*-===//
//
// A socket between each two of them, found by the communicator's name; nothing is left
// behind by a rank that dies. Only `drive` moves anything, and it never waits.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_NCCL_WIRE_H
#define DSOPT_TEST_SOFTDEVICE_NCCL_WIRE_H

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace softdevice {

struct Header {
  enum Kind : uint32_t { Hello, Gather, Sum, Value, Taken };
  uint32_t kind = Hello;
  uint32_t type = 0;
  uint64_t count = 0; ///< elements; Hello: the sender's rank
  uint64_t bytes = 0; ///< that follow
};
struct Message {
  Header header;
  std::string bytes;
};

class Wire {
public:
  /// `self`: what each peer is told of this rank first.
  Wire(const std::string &name, int rank, int size, const std::string &self);
  ~Wire();
  Wire(const Wire &) = delete;

  /// Joins, sends and takes what can be without waiting.
  void drive();
  bool isJoined() const;
  void send(int peer, Header header, const std::string &bytes);
  /// What came from a peer and nobody took: values and parts of collectives.
  std::deque<Message> &inbox(int peer) { return peers[peer].inbox; }
  /// How many messages the peer has taken.
  int64_t takenBy(int peer) const { return peers[peer].taken; }
  /// It is no more, and nothing more will come.
  bool isGone(int peer) const { return peers[peer].isGone; }
  /// What it said of itself.
  const std::string &hello(int peer) const { return peers[peer].hello; }

private:
  struct Peer {
    int socket = -1;
    bool isGone = false, said = false;
    std::string hello, outgoing, incoming;
    std::deque<Message> inbox;
    int64_t taken = 0;
  };
  int open(int owner, bool listens);
  void join();
  void write(Peer &peer);
  void read(Peer &peer);

  std::string name, self;
  int rank, listener = -1;
  std::vector<Peer> peers, strangers; ///< strangers have not said who they are
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_NCCL_WIRE_H
