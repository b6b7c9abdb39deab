//===- Sockets.h - connections that end by a deadline -----------*- C++ -*-===//
//
// What the ranks of several processes meet through: sockets that close
// themselves, and waiting that ends by a deadline, and at once when the run is
// interrupted.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_SOCKETS_H
#define DSOPT_LIB_RUNTIME_COMM_SOCKETS_H

#include "dsopt/Runtime/Error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
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
  /// A name on this host, not an address of a network.
  bool local() const { return storage.ss_family == AF_UNIX; }
  int port() const;
  void setPort(int port);
  /// For a packet, and back: false if the bytes are no address.
  std::string packed() const;
  bool unpack(const std::string &bytes);
};

/// A peer that closed, refused or did not answer in time; the text says which.
class Disconnected : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The address of a name in the abstract namespace of this host's sockets.
Address localName(const std::string &name);
/// The addresses of a name; throws Disconnected.
std::vector<Address> resolveHost(const std::string &name);
Address localAddress(const Socket &socket);
Address peerAddress(const Socket &socket);

/// A connection that is being made (or has been: writable at once), or none with errno.
Socket beginConnect(const Address &address);
/// 0 once it has been made, else the error number.
int connectError(const Socket &socket);
/// A connection, or none with the reason in `why`. Tries once.
Socket connectOnce(const Address &address, const Patience &patience, std::string &why);
/// A socket that listens, or none with errno.
Socket listenAt(const Address &address);
/// A socket that listens at a free port of every interface of this family.
Socket listenAnywhere(int family);
/// A connection that is there, or none with errno: EAGAIN if nobody comes.
Socket acceptNow(const Socket &listener);
/// A connection that has come within `patience`, or none. Throws Disconnected when the system has no room
/// for one.
Socket acceptOnce(const Socket &listener, const Patience &patience);
/// As many open files as the system permits; how many that are.
size_t raiseDescriptorLimit();
/// No waiting for more to send, and an end when the peer's host is gone.
void prepareStream(const Socket &socket);

/// Throws an Error of status 3 when interrupted.
void checkInterrupted(const Patience &patience);

/// True once `events` (of poll) has come, false at the end of patience; checks for interruption.
bool waitFor(int fd, short events, const Patience &patience);

/// A file descriptor through a unix socket.
void sendDescriptor(const Socket &socket, int fd);
int receiveDescriptor(const Socket &socket, const Patience &patience);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_SOCKETS_H
