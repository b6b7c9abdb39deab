//===- RendezvousGuest.cpp - the other ranks find rank 0 -------------------===//

#include "Comm/RendezvousProtocol.h"

#include <algorithm>
#include <cstring>

#include <poll.h>

namespace dsopt::runtime::rendezvous {
namespace {

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

Met joinHost(const Meeting &meeting, const Patience &patience) { return GuestRank(meeting, patience).join(); }

} // namespace dsopt::runtime::rendezvous
