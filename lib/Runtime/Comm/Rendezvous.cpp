//===- Rendezvous.cpp - processes become ranks of one run ------------------===//
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

#include "Comm/Rendezvous.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

namespace dsopt::runtime {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kMagic[] = "dsopt ranks 1\n";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
constexpr size_t kHelloBytes = 64 << 10, kTableBytes = 64 << 20;
/// So long a connection may take to say who it is.
constexpr seconds kHelloLimit(5);
/// Once all ranks are there, so long they may take to connect to each other.
constexpr seconds kConnectLimit(20);
enum Kind : uint32_t { Hello = 1, Here, Elsewhere, Welcome, Port, Ports, Ready, Go, Refused, Trouble, Peer };

/// What a rank says of itself.
struct Guest {
  int64_t rank = 0, size = 0;
  std::string job, host, name, what;
  uint64_t program = 0, build = 0, options = 0;
  Socket socket;
};

/// Ranks with equal identities are processes of one machine that see each other's sockets.
std::string hostIdentity(const Meeting &meeting) {
  if (!meeting.host.empty())
    return "named " + meeting.host;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char network[256] = {};
  if (readlink("/proc/self/ns/net", network, sizeof network - 1) < 0 || boot.empty())
    return "process " + std::to_string(getpid()) + std::to_string(gethostid());
  return boot + " " + network;
}

std::string hostName(const Meeting &meeting) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return meeting.host.empty() ? name : meeting.host;
}

std::string secretBytes() {
  std::string secret(32, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw LaunchError(StatusFailure, "the system gives no random numbers");
  return secret;
}

/// Runs of neighbouring ports are different jobs.
std::string jobOf(const Meeting &meeting) { return std::to_string(meeting.port) + " " + meeting.job; }

Packet helloOf(const Meeting &meeting) {
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

Guest readHello(Packet packet) {
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

std::string called(int64_t rank, const std::string &name) {
  return "rank " + std::to_string(rank) + " on " + name;
}

Packet said(int status, const std::string &text) {
  Packet packet;
  packet.number(status);
  packet.text(text);
  return packet;
}

[[noreturn]] void refusedBy(Packet &packet) {
  int status = static_cast<int>(packet.number());
  throw LaunchError(status, packet.text());
}

/// Where rank 0 may be: the ports in the order they are tried.
std::vector<int> portsOf(const Meeting &meeting) {
  std::vector<int> ports;
  for (int i = meeting.portTaken; i < Meeting::kPorts && meeting.port + i < 65536; ++i)
    ports.push_back(meeting.port + i);
  return ports;
}

bool isLoopbackName(const std::string &name) {
  return name == "localhost" || name == "::1" || name.compare(0, 4, "127.") == 0;
}

std::string placeOf(const Meeting &meeting) { return meeting.address + ":" + std::to_string(meeting.port); }

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

class Host {
public:
  Host(const Meeting &meeting, const Patience &patience) : meeting(meeting), patience(patience) {
    guests.resize(meeting.size);
  }

  Met gather() {
    listen();
    guests[0] = readHello(helloOf(meeting));
    for (there = 1; there < meeting.size;)
      wait();
    Met met;
    met.secret = secretBytes();
    Packet welcome, ports;
    welcome.text(met.secret);
    for (const std::optional<Guest> &guest : guests) {
      met.hosts.push_back(guest->host);
      met.names.push_back(guest->name);
      welcome.text(guest->host);
      welcome.text(guest->name);
    }
    patience.end = Patience::Clock::now() + kConnectLimit;
    tell(Welcome, welcome);
    std::vector<Packet> answers = hearAll(Port);
    for (int rank = 1; rank < meeting.size; ++rank) {
      Address address = peerAddress(guests[rank]->socket);
      address.setPort(static_cast<int>(answers[rank].number()));
      ports.text(std::string(reinterpret_cast<const char *>(&address), sizeof address));
    }
    tell(Ports, ports);
    hearAll(Ready);
    tell(Go, Packet());
    met.links.resize(meeting.size);
    for (int rank = 1; rank < meeting.size; ++rank)
      met.links[rank] = std::move(guests[rank]->socket);
    return met;
  }

private:
  /// A connection that has not yet said who it is.
  struct Visitor {
    Socket socket;
    Patience patience;
    std::string received;
  };

  void listen() {
    std::vector<Address> addresses;
    try {
      addresses = resolveHost(meeting.address);
    } catch (const Disconnected &error) {
      throw LaunchError(StatusFailure, "rank 0 cannot listen at '" + meeting.address + "': " + error.why);
    }
    int error = 0;
    for (int port : portsOf(meeting))
      for (Address address : addresses) {
        address.setPort(port);
        // A host's own name often is a loopback address to itself, but not to others.
        if (!address.loopback() || isLoopbackName(meeting.address))
          listener = listenAt(address);
        else
          errno = EADDRNOTAVAIL;
        if (!listener && errno == EADDRNOTAVAIL) {
          // The name is one for others, as behind a translated address.
          Address any;
          any.storage.ss_family = address.storage.ss_family;
          any.bytes = address.bytes;
          any.setPort(port);
          listener = listenAt(any);
        }
        if (listener)
          return;
        error = errno;
      }
    throw LaunchError(StatusFailure, "rank 0 cannot listen at " + placeOf(meeting) + " or the " +
                                         std::to_string(Meeting::kPorts - 1) +
                                         " ports after it: " + std::strerror(error));
  }

  /// Until somebody comes or goes, or patience ends.
  void wait() {
    std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
    for (const Visitor &visitor : visitors)
      entries.push_back({visitor.socket.fd(), POLLIN, 0});
    for (const std::optional<Guest> &guest : guests)
      if (guest && guest->socket)
        entries.push_back({guest->socket.fd(), POLLIN, 0});
    poll(entries.data(), entries.size(), 100);
    checkInterrupted(patience);
    for (std::optional<Guest> &guest : guests) {
      char byte;
      if (guest && guest->socket && recv(guest->socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        refuse(StatusFailure, called(guest->rank, guest->name) + " ended before all ranks had met");
    }
    while (true) {
      Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket)
        break;
      // More than could be ranks are somebody else's.
      if (visitors.size() < static_cast<size_t>(meeting.size) + 64)
        visitors.push_back({std::move(socket), patience.within(kHelloLimit), ""});
    }
    for (size_t i = 0; i < visitors.size();)
      if (hear(visitors[i])) {
        visitors[i] = std::move(visitors.back());
        visitors.pop_back();
      } else {
        ++i;
      }
    if (!refusal && patience.over())
      refuse(StatusFailure, missing());
  }

  /// True if the visitor has become a guest, or is none.
  bool hear(Visitor &visitor) {
    char buffer[4096];
    ssize_t got = 0;
    while ((got = recv(visitor.socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0 &&
           visitor.received.size() < kHelloBytes)
      visitor.received.append(buffer, got);
    const std::string &text = visitor.received;
    if (text.compare(0, kMagicBytes, kMagic, std::min(text.size(), kMagicBytes)) != 0)
      return true;
    uint32_t head[2] = {};
    constexpr size_t kHead = kMagicBytes + sizeof head;
    if (text.size() >= kHead)
      std::memcpy(head, text.data() + kMagicBytes, sizeof head);
    if (text.size() < kHead || text.size() < kHead + head[1])
      return got == 0 || head[1] > kHelloBytes || visitor.patience.over();
    if (head[0] != Hello)
      return true;
    try {
      Packet packet;
      packet.bytes = text.substr(kHead, head[1]);
      Guest guest = readHello(packet);
      bool ours = guest.job == jobOf(meeting);
      sendPacket(visitor.socket, ours ? Here : Elsewhere, Packet(), visitor.patience);
      if (!ours)
        return true;
      guest.socket = std::move(visitor.socket);
      prepareStream(guest.socket);
      receive(std::move(guest));
    } catch (const Disconnected &) {
    }
    return true;
  }

  void receive(Guest guest) {
    if (refusal) {
      inform(guest.socket, *refusal);
      ++informed;
      return;
    }
    const Guest &first = *guests[0];
    std::string who = called(guest.rank, guest.name), problem;
    int64_t rank = guest.rank;
    if (guest.size != meeting.size)
      problem = who + " was started as one of " + std::to_string(guest.size) + " ranks, rank 0 as one of " +
                std::to_string(meeting.size);
    else if (rank < 0 || rank >= meeting.size)
      problem = who + ": expected 0 to " + std::to_string(meeting.size - 1);
    else if (guests[rank])
      problem = "rank " + std::to_string(rank) + " was started twice: on " + guests[rank]->name + " and on " +
                guest.name;
    else if (guest.program != first.program)
      problem = who + " runs another program than rank 0: " + guest.what + ", rank 0 " + first.what;
    else if (guest.build != first.build)
      problem = who + " runs another build of the program than rank 0 on " + first.name + ": " + guest.what;
    else if (guest.options != first.options)
      problem = who + " was started with other options than rank 0 on " + first.name +
                ": the learning rate, its schedule, the optimizer's numbers, seed, steps and shuffle have to "
                "be the same";
    if (rank > 0 && rank < meeting.size && !guests[rank]) {
      guests[rank] = std::move(guest);
      ++there;
    } else if (!problem.empty()) {
      strangers.push_back(std::move(guest));
    }
    if (!problem.empty())
      refuse(StatusInput, problem);
  }

  std::string missing() const {
    std::string text;
    int count = 0;
    for (int rank = 1; rank < meeting.size; ++rank)
      if (!guests[rank] && ++count <= 8)
        text += (count > 1 ? ", " : "") + std::to_string(rank);
    return (count > 1 ? "ranks " : "rank ") + text + (count > 8 ? " ..." : "") + " of " +
           std::to_string(meeting.size) + (count > 1 ? " have" : " has") + " not come to " +
           placeOf(meeting) + " within " + std::to_string(meeting.limit.count()) + " s";
  }

  void inform(const Socket &socket, const Packet &packet) {
    try {
      sendPacket(socket, Refused, packet, patience.within(seconds(2)));
    } catch (const Disconnected &) {
    }
  }

  /// Tells all, also who comes in the next seconds.
  [[noreturn]] void refuse(int status, const std::string &text) {
    refusal = said(status, text);
    patience.end = patience.over() ? patience.end : Patience::Clock::now() + seconds(3);
    informed = 1;
    for (const std::optional<Guest> &guest : guests)
      if (guest && guest->socket) {
        inform(guest->socket, *refusal);
        ++informed;
      }
    for (const Guest &stranger : strangers)
      inform(stranger.socket, *refusal);
    for (std::optional<Guest> &guest : guests)
      guest.reset();
    while (informed < meeting.size && !patience.over())
      wait();
    throw LaunchError(status, text);
  }

  void tell(Kind kind, const Packet &packet) {
    for (int rank = 1; rank < meeting.size; ++rank)
      try {
        sendPacket(guests[rank]->socket, kind, packet, patience);
      } catch (const Disconnected &error) {
        lost(rank, error);
      }
  }
  /// What each rank answers, in whatever order it comes: the first trouble is everybody's.
  std::vector<Packet> hearAll(Kind expected) {
    std::vector<Packet> answers(meeting.size);
    std::vector<pollfd> entries(meeting.size, {-1, POLLIN, 0});
    for (int rank = 1; rank < meeting.size; ++rank)
      entries[rank].fd = guests[rank]->socket.fd();
    for (int left = meeting.size - 1; left > 0;) {
      poll(entries.data(), entries.size(), 100);
      checkInterrupted(patience);
      for (int rank = 1; rank < meeting.size; ++rank) {
        bool late = entries[rank].fd >= 0 && patience.over();
        if (!entries[rank].revents && !late)
          continue;
        answers[rank] = answer(rank, expected);
        entries[rank].fd = -1; // not asked any more
        --left;
      }
    }
    return answers;
  }
  Packet answer(int rank, Kind expected) {
    try {
      uint32_t kind = 0;
      Packet packet = receivePacket(guests[rank]->socket, kind, kHelloBytes, patience);
      if (kind == expected)
        return packet;
      int status = kind == Trouble ? static_cast<int>(packet.number()) : int(StatusFailure);
      refuse(status, kind == Trouble ? packet.text()
                                     : called(rank, guests[rank]->name) + " does not keep to the protocol");
    } catch (const Disconnected &error) {
      lost(rank, error);
    }
  }
  [[noreturn]] void lost(int rank, const Disconnected &error) {
    refuse(StatusFailure, called(rank, guests[rank]->name) + " ended before all ranks had met: " + error.why);
  }

  const Meeting &meeting;
  Patience patience;
  Socket listener;
  std::vector<Visitor> visitors;
  std::vector<std::optional<Guest>> guests; ///< by rank
  std::vector<Guest> strangers;             ///< that no rank is left for
  int there = 0;
  std::optional<Packet> refusal; ///< for whoever comes now
  int informed = 0;
};

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

/// The connection to rank 0, once it has said that it is that.
Socket findHost(const Meeting &meeting, const Patience &patience) {
  std::string why = "nobody answers";
  Packet hello = helloOf(meeting);
  while (true) {
    try {
      for (Address address : resolveHost(meeting.address))
        for (int port : portsOf(meeting)) {
          address.setPort(port);
          Socket socket = connectOnce(address, patience.within(seconds(3)), why);
          if (!socket)
            continue;
          try {
            uint32_t kind = 0;
            Patience soon = patience.within(seconds(3));
            sendAll(socket, kMagic, kMagicBytes, soon);
            sendPacket(socket, Hello, hello, soon);
            receivePacket(socket, kind, 0, soon);
            if (kind == Here)
              return socket;
            why = "another job's rank 0 is there";
          } catch (const Disconnected &) {
            why = "what listens there is no rank 0";
          }
        }
    } catch (const Disconnected &error) {
      why = error.why;
    }
    if (patience.over())
      throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " of " +
                                           std::to_string(meeting.size) + " cannot reach rank 0 at " +
                                           placeOf(meeting) + " within " +
                                           std::to_string(meeting.limit.count()) + " s: " + why);
    waitFor(-1, 0, patience.within(milliseconds(50)));
  }
}

class GuestRank {
public:
  GuestRank(const Meeting &meeting, const Patience &patience) : meeting(meeting), patience(patience) {}

  Met join() {
    host = findHost(meeting, patience);
    prepareStream(host);
    // Rank 0's own limit ends first: it says what is missing.
    patience.end += kConnectLimit + seconds(5);
    Met met;
    met.links.resize(meeting.size);
    Packet welcome = fromHost(Welcome);
    met.secret = welcome.text();
    for (int rank = 0; rank < meeting.size; ++rank) {
      met.hosts.push_back(welcome.text());
      met.names.push_back(welcome.text());
    }
    listen(met);
    Packet port;
    port.number(localAddress(listener).port());
    toHost(Port, port);
    Packet ports = fromHost(Ports);
    try {
      connectAll(met, ports);
      acceptAll(met);
    } catch (const LaunchError &error) {
      toHost(Trouble, said(error.status, error.what()));
      fromHost(Go); // rank 0 refuses with these words
    }
    toHost(Ready, Packet());
    fromHost(Go);
    met.links[0] = std::move(host);
    return met;
  }

private:
  Packet fromHost(Kind expected) {
    try {
      uint32_t kind = 0;
      Packet packet = receivePacket(host, kind, kTableBytes, patience);
      if (kind == Refused)
        refusedBy(packet);
      if (kind == expected)
        return packet;
      throw Disconnected{"it does not keep to the protocol"};
    } catch (const Disconnected &error) {
      lost(error);
    }
  }
  void toHost(Kind kind, const Packet &packet) {
    try {
      sendPacket(host, kind, packet, patience);
    } catch (const Disconnected &error) {
      lost(error);
    }
  }
  [[noreturn]] void lost(const Disconnected &error) {
    throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " lost rank 0 at " +
                                         placeOf(meeting) + " before all ranks had met: " + error.why);
  }

  /// Where the ranks above this one connect: beside the way to rank 0, which others can go too; on rank 0's
  /// own host that may be the loopback, which they cannot.
  void listen(const Met &met) {
    Address address = localAddress(host);
    bool alone = std::count(met.hosts.begin(), met.hosts.end(), met.hosts[0]) == meeting.size;
    address.setPort(0);
    listener = address.loopback() && !alone ? listenAnywhere(address.storage.ss_family) : listenAt(address);
    if (!listener) {
      std::string why = std::strerror(errno);
      toHost(Trouble, said(StatusFailure, "rank " + std::to_string(meeting.rank) + " cannot listen at " +
                                              address.text() + ": " + why));
      fromHost(Go);
    }
  }

  void connectAll(Met &met, Packet &ports) {
    for (int rank = 1; rank < meeting.rank; ++rank) {
      Address address;
      std::string bytes = ports.text(), why;
      if (bytes.size() != sizeof address)
        lost({"a message that is too short"});
      std::memcpy(static_cast<void *>(&address), bytes.data(), sizeof address);
      int port = address.port();
      Address throughHost = peerAddress(host);
      // Ranks on rank 0's host are where rank 0 is.
      if (address.loopback() && !throughHost.loopback()) {
        address = throughHost;
        address.setPort(port);
      }
      Socket socket = connectOnce(address, patience.within(seconds(15)), why);
      if (!socket)
        throw LaunchError(StatusFailure, called(meeting.rank, met.names[meeting.rank]) + " cannot reach " +
                                             called(rank, met.names[rank]) + " at " + address.text() + ":" +
                                             std::to_string(port) + ": " + why);
      prepareStream(socket);
      Packet packet;
      packet.number(meeting.rank);
      packet.text(met.secret);
      try {
        sendPacket(socket, Peer, packet, patience);
      } catch (const Disconnected &error) {
        throw LaunchError(StatusFailure, called(rank, met.names[rank]) + " does not answer: " + error.why);
      }
      met.links[rank] = std::move(socket);
    }
  }

  void acceptAll(Met &met) {
    for (int left = meeting.size - meeting.rank - 1; left > 0;) {
      pollfd entries[] = {{listener.fd(), POLLIN, 0}, {host.fd(), POLLIN, 0}};
      poll(entries, 2, 100);
      if (entries[1].revents)
        fromHost(Go); // it gives up
      Socket socket = acceptOnce(listener, patience.within(milliseconds(0)));
      if (!socket && patience.over())
        throw LaunchError(StatusFailure, called(meeting.rank, met.names[meeting.rank]) +
                                             ": not all ranks above it have connected");
      if (!socket)
        continue;
      try {
        uint32_t kind = 0;
        Packet packet = receivePacket(socket, kind, kHelloBytes, patience.within(kHelloLimit));
        int64_t rank = static_cast<int64_t>(packet.number());
        if (kind != Peer || packet.text() != met.secret || rank <= meeting.rank || rank >= meeting.size ||
            met.links[rank])
          continue;
        prepareStream(socket);
        met.links[rank] = std::move(socket);
        --left;
      } catch (const Disconnected &) {
      }
    }
  }

  const Meeting &meeting;
  Patience patience;
  Socket host, listener;
};

} // namespace

Met meet(const Meeting &meeting) {
  Patience patience{Patience::Clock::now() + meeting.limit, meeting.interrupted};
  return meeting.rank == 0 ? Host(meeting, patience).gather() : GuestRank(meeting, patience).join();
}

} // namespace dsopt::runtime
