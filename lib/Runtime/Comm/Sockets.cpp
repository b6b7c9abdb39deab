//===- Sockets.cpp - connections that end by a deadline --------------------===//

#include "Comm/Sockets.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/un.h>

namespace dsopt::runtime {

Socket::~Socket() {
  if (descriptor >= 0)
    sys::close(descriptor);
}

std::string Address::text() const {
  char name[INET6_ADDRSTRLEN] = "this host";
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

std::string Address::packed() const {
  std::string bytes(1, storage.ss_family == AF_INET ? '4' : '6');
  uint16_t number = static_cast<uint16_t>(port());
  bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
  if (storage.ss_family == AF_INET)
    bytes.append(reinterpret_cast<const char *>(&reinterpret_cast<const sockaddr_in &>(storage).sin_addr), 4);
  else
    bytes.append(reinterpret_cast<const char *>(&reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr),
                 16);
  return bytes;
}

bool Address::unpack(const std::string &text) {
  *this = Address();
  uint16_t number = 0;
  bool four = text.size() == 3 + 4 && text[0] == '4', six = text.size() == 3 + 16 && text[0] == '6';
  if (!four && !six)
    return false;
  std::memcpy(&number, text.data() + 1, sizeof number);
  storage.ss_family = four ? AF_INET : AF_INET6;
  bytes = four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (four)
    std::memcpy(&reinterpret_cast<sockaddr_in &>(storage).sin_addr, text.data() + 3, 4);
  else
    std::memcpy(&reinterpret_cast<sockaddr_in6 &>(storage).sin6_addr, text.data() + 3, 16);
  setPort(number);
  return true;
}

Address localName(const std::string &text) {
  Address address;
  auto &name = reinterpret_cast<sockaddr_un &>(address.storage);
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, text.data(), std::min(text.size(), sizeof name.sun_path - 1));
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

std::vector<Address> resolveHost(const std::string &name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int error = getaddrinfo(name.c_str(), nullptr, &hints, &found))
    throw Disconnected(std::string("the name cannot be resolved: ") + gai_strerror(error));
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
    if (sys::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 100))) > 0)
      return true;
    if (patience.over())
      return false;
  }
}

Socket beginConnect(const Address &address) {
  Socket connection(sys::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!connection || (sys::connect(connection.fd(), reinterpret_cast<const sockaddr *>(&address.storage),
                                   address.bytes) != 0 &&
                      errno != EINPROGRESS)) {
    int error = errno;
    connection = Socket();
    errno = error;
    return Socket();
  }
  return connection;
}

int connectError(const Socket &socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

Socket connectOnce(const Address &address, const Patience &patience, std::string &why) {
  Socket connection = beginConnect(address);
  int error = !connection                                    ? errno
              : !waitFor(connection.fd(), POLLOUT, patience) ? ETIMEDOUT
                                                             : connectError(connection);
  if (!error)
    return connection;
  why = std::strerror(error);
  return Socket();
}

Socket listenAt(const Address &address) {
  Socket listener(sys::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  // What an earlier run left in TIME_WAIT does not matter; a port in use still does.
  if (listener && address.storage.ss_family != AF_UNIX)
    setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener &&
      (sys::bind(listener.fd(), reinterpret_cast<const sockaddr *>(&address.storage), address.bytes) != 0 ||
       sys::listen(listener.fd(), SOMAXCONN) != 0)) {
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

Socket acceptNow(const Socket &listener) {
  return Socket(sys::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

Socket acceptOnce(const Socket &listener, const Patience &patience) {
  if (!waitFor(listener.fd(), POLLIN, patience))
    return Socket();
  Socket socket = acceptNow(listener);
  // The listener stays readable: asking again would not end.
  if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
    throw Disconnected(std::strerror(errno));
  return socket;
}

size_t raiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 0;
  rlimit raised{limit.rlim_max, limit.rlim_max};
  if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
    limit = raised;
  return limit.rlim_cur;
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

/// What a call that a signal may interrupt returns when none does.
template <typename Call> ssize_t uninterrupted(Call call) {
  ssize_t result;
  while ((result = call()) < 0 && errno == EINTR)
    ;
  return result;
}
} // namespace

void sendDescriptor(const Socket &socket, int fd) {
  DescriptorMessage descriptor;
  cmsghdr *header = CMSG_FIRSTHDR(&descriptor.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (uninterrupted([&] { return sys::sendmsg(socket.fd(), &descriptor.message, MSG_NOSIGNAL); }) != 1)
    throw Disconnected(std::strerror(errno));
}

int receiveDescriptor(const Socket &socket, const Patience &patience) {
  if (!waitFor(socket.fd(), POLLIN, patience))
    throw Disconnected("no answer in time");
  DescriptorMessage descriptor;
  int fd = -1;
  ssize_t got =
      uninterrupted([&] { return sys::recvmsg(socket.fd(), &descriptor.message, MSG_CMSG_CLOEXEC); });
  if (got != 1)
    throw Disconnected(got < 0 ? std::strerror(errno) : "it closed the connection");
  cmsghdr *header = CMSG_FIRSTHDR(&descriptor.message);
  if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
    throw Disconnected("it sent no memory");
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

} // namespace dsopt::runtime
