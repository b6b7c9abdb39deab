//===- Sockets.h - connections that end by a deadline -----------*- C++ -*-===//
//
// What the ranks of several processes meet through: sockets that close
// themselves, and blocking reads and writes of whole messages. Everything ends by
// a deadline, and at once when the run is interrupted.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_SOCKETS_H
#define DSOPT_LIB_RUNTIME_COMM_SOCKETS_H

#include "dsopt/Runtime/Error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace dsopt::runtime {

/// A file descriptor that closes itself.
class Socket {
public:
  explicit Socket(int fd = -1) : descriptor(fd) {}
  Socket(Socket &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket();
  int fd() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

private:
  int descriptor;
};

/// Until when something may take, and whether the run is to end before that.
struct Patience {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end;
  std::function<bool()> interrupted;

  bool over() const { return Clock::now() >= end; }
  /// The same, but at most so much longer.
  Patience within(std::chrono::milliseconds limit) const {
    return {std::min(end, Clock::now() + limit), interrupted};
  }
};

/// A host and port as the system sees them.
struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string text() const; ///< "10.0.0.1" or "fe80::1", without the port
  bool loopback() const;
  int port() const;
  void setPort(int port);
};

/// A peer that closed, refused or did not answer in time; the text says which.
struct Disconnected {
  std::string why;
};

/// The addresses of a name; throws Disconnected.
std::vector<Address> resolveHost(const std::string &name);
Address localAddress(const Socket &socket);
Address peerAddress(const Socket &socket);

/// A connection, or none with the reason in `why`. Tries once.
Socket connectOnce(const Address &address, const Patience &patience, std::string &why);
/// A socket that listens, or none with errno.
Socket listenAt(const Address &address);
/// A socket that listens at a free port of every interface of this family.
Socket listenAnywhere(int family);
/// A connection that has come within `patience`, or none.
Socket acceptOnce(const Socket &listener, const Patience &patience);
/// No waiting for more to send, and an end when the peer's host is gone.
void prepareStream(const Socket &socket);

/// Throws an Error of status 3 when interrupted.
void checkInterrupted(const Patience &patience);

/// True once `events` (of poll) has come, false at the end of patience; checks for interruption.
bool waitFor(int fd, short events, const Patience &patience);

// Whole messages; throw Disconnected.
void sendAll(const Socket &socket, const void *data, size_t bytes, const Patience &patience);
void receiveAll(const Socket &socket, void *data, size_t bytes, const Patience &patience);

/// Numbers and texts one after the other, and back. What does not fit throws Disconnected.
class Packet {
public:
  std::string bytes;
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }
  void text(const std::string &value) {
    number(value.size());
    bytes += value;
  }
  uint64_t number();
  std::string text();

private:
  size_t next = 0;
};

/// A packet in a frame of its own, with a kind; `limit` bytes at most.
void sendPacket(const Socket &socket, uint32_t kind, const Packet &packet, const Patience &patience);
Packet receivePacket(const Socket &socket, uint32_t &kind, size_t limit, const Patience &patience);

/// A file descriptor through a unix socket.
void sendDescriptor(const Socket &socket, int fd);
int receiveDescriptor(const Socket &socket, const Patience &patience);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_SOCKETS_H
