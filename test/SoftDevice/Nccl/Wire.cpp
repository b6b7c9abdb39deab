//===- Wire.cpp - what the ranks of a communicator send each other --------===//

#include "Wire.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace softdevice {

Wire::Wire(const std::string &name, int rank, int size, const std::string &self)
    : name(name), self(self), rank(rank), peers(size) {
  listener = open(rank, /*listens=*/true);
}

Wire::~Wire() {
  for (Peer &peer : peers)
    if (peer.socket >= 0)
      close(peer.socket);
  for (Peer &peer : strangers)
    close(peer.socket);
  close(listener);
}

/// Of a name that lives as long as its socket; -1: nobody listens there yet.
int Wire::open(int owner, bool listens) {
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string text = "soft-nccl-" + name + "-" + std::to_string(owner);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  auto *place = reinterpret_cast<sockaddr *>(&address);
  if (listens ? bind(made, place, length) == 0 && listen(made, 128) == 0 : connect(made, place, length) == 0)
    return made;
  close(made);
  return -1;
}

/// Each rank goes to those below it.
void Wire::join() {
  for (int lower = 0; lower < rank; ++lower)
    if (Peer &peer = peers[lower]; peer.socket < 0 && !peer.isGone)
      peer.socket = open(lower, /*listens=*/false);
  for (int made; (made = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    strangers.emplace_back();
    strangers.back().socket = made;
  }
  for (size_t i = 0; i < strangers.size();) {
    Peer &stranger = strangers[i];
    read(stranger);
    if (stranger.inbox.empty() && !stranger.isGone) {
      ++i;
      continue;
    }
    if (!stranger.inbox.empty()) {
      Message hello = std::move(stranger.inbox.front());
      stranger.inbox.pop_front();
      Peer &peer = peers[hello.header.count];
      peer = std::move(stranger);
      peer.hello = std::move(hello.bytes);
    }
    strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (Peer &peer : peers)
    if (peer.socket >= 0 && !peer.said) {
      peer.said = true;
      Header header{Header::Hello, 0, static_cast<uint64_t>(rank), self.size()};
      peer.outgoing.insert(0, self);
      peer.outgoing.insert(0, reinterpret_cast<const char *>(&header), sizeof(header));
    }
}

bool Wire::isJoined() const {
  for (size_t other = 0; other < peers.size(); ++other)
    if (static_cast<int>(other) != rank && peers[other].hello.empty())
      return false;
  return true;
}

void Wire::drive() {
  if (!isJoined())
    join();
  for (Peer &peer : peers)
    if (peer.socket >= 0) {
      write(peer);
      read(peer);
    }
}

void Wire::send(int to, Header header, const std::string &bytes) {
  Peer &peer = peers[to];
  header.bytes = bytes.size();
  peer.outgoing.append(reinterpret_cast<const char *>(&header), sizeof(header));
  peer.outgoing += bytes;
  write(peer);
}

void Wire::write(Peer &peer) {
  while (!peer.outgoing.empty() && peer.socket >= 0) {
    ssize_t count = ::send(peer.socket, peer.outgoing.data(), peer.outgoing.size(), MSG_NOSIGNAL);
    if (count <= 0)
      return;
    peer.outgoing.erase(0, static_cast<size_t>(count));
  }
}

void Wire::read(Peer &peer) {
  char piece[1 << 16];
  ssize_t count;
  while ((count = recv(peer.socket, piece, sizeof(piece), 0)) > 0)
    peer.incoming.append(piece, static_cast<size_t>(count));
  peer.isGone |= count == 0 || (errno != EAGAIN && errno != EINTR);
  size_t at = 0;
  for (Header header; peer.incoming.size() - at >= sizeof(header);) {
    std::memcpy(&header, peer.incoming.data() + at, sizeof(header));
    if (peer.incoming.size() - at - sizeof(header) < header.bytes)
      break;
    Message message{header, peer.incoming.substr(at + sizeof(header), header.bytes)};
    at += sizeof(header) + header.bytes;
    // One that came to this rank says who it is before it is anybody.
    if (header.kind == Header::Hello && peer.said)
      peer.hello = std::move(message.bytes);
    else if (header.kind == Header::Taken)
      ++peer.taken;
    else
      peer.inbox.push_back(std::move(message));
  }
  peer.incoming.erase(0, at);
}

} // namespace softdevice
