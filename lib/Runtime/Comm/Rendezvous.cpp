//===- Rendezvous.cpp - rank 0 gathers the ranks of a run ------------------===//

#include "Comm/RendezvousProtocol.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <poll.h>

namespace dsopt::runtime {
using namespace rendezvous;
namespace {

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

} // namespace

Met meet(const Meeting &meeting) {
  Patience patience{Patience::Clock::now() + meeting.limit, meeting.interrupted};
  return meeting.rank == 0 ? Host(meeting, patience).gather() : joinHost(meeting, patience);
}

} // namespace dsopt::runtime
