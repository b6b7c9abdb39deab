//===- Sockets.cpp - connections that end by a deadline --------------------===//

#include "Comm/Sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

namespace dsopt::runtime {

Socket::~Socket() {
  if (descriptor >= 0)
    close(descriptor);
}

std::string Address::text() const {
  char name[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in &>(storage).sin_addr, name, sizeof name);
  else if (storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr, name, sizeof name);
  return name;
}

bool Address::loopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in &>(storage).sin_addr.s_addr) >> 24 == 127;
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr);
}

int Address::port() const {
  return ntohs(storage.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in &>(storage).sin_port
                                            : reinterpret_cast<const sockaddr_in6 &>(storage).sin6_port);
}

void Address::setPort(int port) {
  (storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in &>(storage).sin_port
                                : reinterpret_cast<sockaddr_in6 &>(storage).sin6_port) = htons(port);
}

std::vector<Address> resolveHost(const std::string &name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int error = getaddrinfo(name.c_str(), nullptr, &hints, &found))
    throw Disconnected{std::string("the name cannot be resolved: ") + gai_strerror(error)};
  std::vector<Address> addresses;
  for (addrinfo *info = found; info; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
      continue;
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.bytes = info->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

static Address addressBy(int (*get)(int, sockaddr *, socklen_t *), const Socket &socket) {
  Address address;
  address.bytes = sizeof address.storage;
  get(socket.fd(), reinterpret_cast<sockaddr *>(&address.storage), &address.bytes);
  return address;
}
Address localAddress(const Socket &socket) { return addressBy(getsockname, socket); }
Address peerAddress(const Socket &socket) { return addressBy(getpeername, socket); }

void checkInterrupted(const Patience &patience) {
  if (patience.interrupted && patience.interrupted())
    throw Error(StatusInterrupted, "interrupted before the ranks had met", /*quiet=*/true);
}

bool waitFor(int fd, short events, const Patience &patience) {
  while (true) {
    checkInterrupted(patience);
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(patience.end - Patience::Clock::now());
    pollfd entry{fd, events, 0};
    if (poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 100))) > 0)
      return true;
    if (patience.over())
      return false;
  }
}

Socket connectOnce(const Address &address, const Patience &patience, std::string &why) {
  Socket connection(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int error = 0;
  if (!connection) {
    error = errno;
  } else if (connect(connection.fd(), reinterpret_cast<const sockaddr *>(&address.storage), address.bytes)) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t bytes = sizeof error;
      if (!waitFor(connection.fd(), POLLOUT, patience))
        error = ETIMEDOUT;
      else
        getsockopt(connection.fd(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (!error)
    return connection;
  why = std::strerror(error);
  return Socket();
}

Socket listenAt(const Address &address) {
  Socket listener(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  // What an earlier run left in TIME_WAIT does not matter; a port in use still does.
  if (listener && address.storage.ss_family != AF_UNIX)
    setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener &&
      (bind(listener.fd(), reinterpret_cast<const sockaddr *>(&address.storage), address.bytes) != 0 ||
       listen(listener.fd(), SOMAXCONN) != 0)) {
    int error = errno;
    listener = Socket();
    errno = error;
    return Socket();
  }
  return listener;
}

Socket listenAnywhere(int family) {
  Address address;
  address.storage.ss_family = static_cast<sa_family_t>(family);
  address.bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return listenAt(address); // port 0 and the unspecified address are all zeros
}

Socket acceptOnce(const Socket &listener, const Patience &patience) {
  if (!waitFor(listener.fd(), POLLIN, patience))
    return Socket();
  return Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void prepareStream(const Socket &socket) {
  auto set = [&](int level, int option, int value) {
    setsockopt(socket.fd(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that is gone says nothing: asked after 2 s of silence, given up after 3 questions.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void sendAll(const Socket &socket, const void *data, size_t bytes, const Patience &patience) {
  auto *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t sent = send(socket.fd(), next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      next += sent;
      bytes -= sent;
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!waitFor(socket.fd(), POLLOUT, patience))
        throw Disconnected{"it takes nothing"};
    } else {
      throw Disconnected{std::strerror(errno)};
    }
  }
}

void receiveAll(const Socket &socket, void *data, size_t bytes, const Patience &patience) {
  auto *next = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t got = recv(socket.fd(), next, bytes, MSG_DONTWAIT);
    if (got > 0) {
      next += got;
      bytes -= got;
    } else if (got == 0) {
      throw Disconnected{"it closed the connection"};
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!waitFor(socket.fd(), POLLIN, patience))
        throw Disconnected{"no answer in time"};
    } else {
      throw Disconnected{std::strerror(errno)};
    }
  }
}

uint64_t Packet::number() {
  uint64_t value;
  if (bytes.size() - next < sizeof value)
    throw Disconnected{"a message that is too short"};
  std::memcpy(&value, bytes.data() + next, sizeof value);
  next += sizeof value;
  return value;
}

std::string Packet::text() {
  uint64_t size = number();
  if (bytes.size() - next < size)
    throw Disconnected{"a message that is too short"};
  next += size;
  return bytes.substr(next - size, size);
}

void sendPacket(const Socket &socket, uint32_t kind, const Packet &packet, const Patience &patience) {
  uint32_t head[2] = {kind, static_cast<uint32_t>(packet.bytes.size())};
  std::string all(reinterpret_cast<const char *>(head), sizeof head);
  all += packet.bytes;
  sendAll(socket, all.data(), all.size(), patience);
}

Packet receivePacket(const Socket &socket, uint32_t &kind, size_t limit, const Patience &patience) {
  uint32_t head[2];
  receiveAll(socket, head, sizeof head, patience);
  if (head[1] > limit)
    throw Disconnected{"a message that is too long"};
  kind = head[0];
  Packet packet;
  packet.bytes.resize(head[1]);
  receiveAll(socket, packet.bytes.data(), head[1], patience);
  return packet;
}

namespace {
/// A message of one byte with room for a descriptor.
struct DescriptorMessage {
  DescriptorMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  DescriptorMessage(const DescriptorMessage &) = delete;

  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};
} // namespace

void sendDescriptor(const Socket &socket, int fd) {
  DescriptorMessage descriptor;
  cmsghdr *header = CMSG_FIRSTHDR(&descriptor.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket.fd(), &descriptor.message, MSG_NOSIGNAL) != 1)
    throw Disconnected{std::strerror(errno)};
}

int receiveDescriptor(const Socket &socket, const Patience &patience) {
  if (!waitFor(socket.fd(), POLLIN, patience))
    throw Disconnected{"no answer in time"};
  DescriptorMessage descriptor;
  int fd = -1;
  if (recvmsg(socket.fd(), &descriptor.message, MSG_CMSG_CLOEXEC) != 1)
    throw Disconnected{"it closed the connection"};
  cmsghdr *header = CMSG_FIRSTHDR(&descriptor.message);
  if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
    throw Disconnected{"it sent no memory"};
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

} // namespace dsopt::runtime
