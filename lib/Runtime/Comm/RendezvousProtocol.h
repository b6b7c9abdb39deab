//===- RendezvousProtocol.h - what ranks say when they meet -----*- C++ -*-===//
//
// Every rank connects to rank 0 and says who it is. Once all are there and run
// the same thing, rank 0 tells each where the others listen, and each connects to
// those below it. What is wrong with one is told to all. A connection that does
// not speak this language (a port scanner, another service) is dropped; later
// ones have to know a secret that rank 0 made.
//
//   rank r -> 0   Hello: rank, size, job, host, what it runs
//   0 -> rank r   Here (or Elsewhere: another job's rank 0)
//   0 -> rank r   Welcome: secret, hosts and their names        when all are there
//   rank r -> 0   Port: where it listens
//   0 -> rank r   Ports: where all listen                       r connects to 1 .. r - 1
//   rank r -> 0   Ready
//   0 -> rank r   Go
//   Refused instead of any of rank 0's, Trouble instead of any of the others'.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSPROTOCOL_H
#define DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSPROTOCOL_H

#include "Comm/Rendezvous.h"

#include <fstream>

#include <sys/random.h>
#include <unistd.h>

namespace dsopt::runtime::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr char kMagic[] = "dsopt ranks 1\n";
inline constexpr size_t kMagicBytes = sizeof kMagic - 1;
inline constexpr size_t kHelloBytes = 64 << 10, kTableBytes = 64 << 20;
/// So long a connection may take to say who it is.
inline constexpr seconds kHelloLimit(5);
/// Once all ranks are there, so long they may take to connect to each other.
inline constexpr seconds kConnectLimit(20);
enum Kind : uint32_t { Hello = 1, Here, Elsewhere, Welcome, Port, Ports, Ready, Go, Refused, Trouble, Peer };

/// What a rank says of itself.
struct Guest {
  int64_t rank = 0, size = 0;
  std::string job, host, name, what;
  uint64_t program = 0, build = 0, options = 0;
  Socket socket;
};

/// Ranks with equal identities are processes of one machine that see each other's sockets.
inline std::string hostIdentity(const Meeting &meeting) {
  if (!meeting.host.empty())
    return "named " + meeting.host;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char network[256] = {};
  if (readlink("/proc/self/ns/net", network, sizeof network - 1) < 0 || boot.empty())
    return "process " + std::to_string(getpid()) + std::to_string(gethostid());
  return boot + " " + network;
}

inline std::string hostName(const Meeting &meeting) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return meeting.host.empty() ? name : meeting.host;
}

inline std::string secretBytes() {
  std::string secret(32, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw LaunchError(StatusFailure, "the system gives no random numbers");
  return secret;
}

/// Runs of neighbouring ports are different jobs.
inline std::string jobOf(const Meeting &meeting) { return std::to_string(meeting.port) + " " + meeting.job; }

inline Packet helloOf(const Meeting &meeting) {
  Packet packet;
  packet.number(meeting.rank);
  packet.number(meeting.size);
  packet.text(jobOf(meeting));
  packet.text(hostIdentity(meeting));
  packet.text(hostName(meeting));
  packet.text(meeting.what);
  packet.number(meeting.program);
  packet.number(meeting.build);
  packet.number(meeting.options);
  return packet;
}

inline Guest readHello(Packet packet) {
  Guest guest;
  guest.rank = static_cast<int64_t>(packet.number());
  guest.size = static_cast<int64_t>(packet.number());
  guest.job = packet.text();
  guest.host = packet.text();
  guest.name = packet.text();
  guest.what = packet.text();
  guest.program = packet.number();
  guest.build = packet.number();
  guest.options = packet.number();
  return guest;
}

inline std::string called(int64_t rank, const std::string &name) {
  return "rank " + std::to_string(rank) + " on " + name;
}

inline Packet said(int status, const std::string &text) {
  Packet packet;
  packet.number(status);
  packet.text(text);
  return packet;
}

[[noreturn]] inline void refusedBy(Packet &packet) {
  int status = static_cast<int>(packet.number());
  throw LaunchError(status, packet.text());
}

/// Where rank 0 may be: the ports in the order they are tried.
inline std::vector<int> portsOf(const Meeting &meeting) {
  std::vector<int> ports;
  for (int i = meeting.portTaken; i < Meeting::kPorts && meeting.port + i < 65536; ++i)
    ports.push_back(meeting.port + i);
  return ports;
}

inline bool isLoopbackName(const std::string &name) {
  return name == "localhost" || name == "::1" || name.compare(0, 4, "127.") == 0;
}

inline std::string placeOf(const Meeting &meeting) {
  return meeting.address + ":" + std::to_string(meeting.port);
}

/// What the ranks other than 0 do.
Met joinHost(const Meeting &meeting, const Patience &patience);

} // namespace dsopt::runtime::rendezvous

#endif // DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSPROTOCOL_H
