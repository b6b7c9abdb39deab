//===- Tcp.cpp - the wire over sockets -------------------------------------===//

#include "Comm/Tcp.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dsopt::runtime {
namespace {

constexpr int64_t kTurnBytes = 8 << 20;  ///< to or from one peer before the next one's turn
constexpr size_t kAheadBytes = 16 << 10; ///< read behind what is expected: the next small frames
constexpr uint32_t kBell = UINT32_MAX, kListener = kBell - 1;
constexpr std::chrono::milliseconds kTick(1000);
/// So long the rank may compute on after a peer failed; all have to end within 10 s.
constexpr std::chrono::seconds kGrace(4);
/// So long a rank that failed listens on, for its peers to hear it.
constexpr std::chrono::milliseconds kDrain(500);
/// So long a rank tries to reach rank 0.
constexpr std::chrono::milliseconds kReach(1000);
/// Silence after which a peer's kernel is asked about, and how long that may not have answered.
constexpr std::chrono::seconds kSilence(3);
constexpr uint32_t kUnanswered = 5000; // ms

/// Something waits for an acknowledgement, was sent again, and none came for long.
bool isGone(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_retransmits + info.tcpi_probes >= 2 && info.tcpi_last_ack_recv >= kUnanswered;
}

/// Whether rank 0 listens there. It hangs up on visitors; one that stands still leaves them waiting. What a
/// process that ends had not accepted yet is reset.
bool isThere(const Address &first) {
  std::string why;
  Patience patience{Patience::Clock::now() + kReach, nullptr};
  Socket socket = connectOnce(first, patience, why);
  char byte;
  return socket && (!waitFor(socket.fd(), POLLIN, patience) || sys::recv(socket.fd(), &byte, 1, 0) == 0);
}

/// Bytes that the peer's kernel has not acknowledged.
bool hasUnacknowledged(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

} // namespace

TcpLinks::TcpLinks(int rank, Met met, std::function<void()> ring)
    : rank(rank), ring(std::move(ring)), sockets(std::move(met.links)), blocked(sockets.size()),
      bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), events(epoll_create1(EPOLL_CLOEXEC)),
      listener(std::move(met.listener)), slots(Engine::kSlots), sequences(Engine::kCommunicators),
      heard(sockets.size()) {
  if (!bell || !events)
    throw Error(StatusFailure, std::string("cannot wait for connections: ") + std::strerror(errno));
  std::vector<bool> linked;
  for (const Socket &socket : sockets)
    linked.push_back(static_cast<bool>(socket));
  if (linked[0])
    first = peerAddress(sockets[0]);
  wire = std::make_unique<Wire>(rank, std::move(met.names), linked, sys::now(), [this](int slot) {
    slots[slot].live = false;
    slots[slot].state.store(Complete, std::memory_order_release);
    this->ring();
  });
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = kBell;
  bool watched = epoll_ctl(events.fd(), EPOLL_CTL_ADD, bell.fd(), &event) == 0;
  event.data.u32 = kListener;
  if (listener)
    watched &= epoll_ctl(events.fd(), EPOLL_CTL_ADD, listener.fd(), &event) == 0;
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    event.data.u32 = static_cast<uint32_t>(peer);
    if (sockets[peer])
      watched &= epoll_ctl(events.fd(), EPOLL_CTL_ADD, sockets[peer].fd(), &event) == 0;
  }
  if (!watched)
    throw Error(StatusFailure, std::string("cannot wait for connections: ") + std::strerror(errno));
  if (met.failure) {
    if (linked[0])
      wire->ignore(0);
    wire->notice(met.failure->status, 0, met.failure->what());
  }
  thread = startThread([this] { work(); });
}

TcpLinks::~TcpLinks() {
  quit = true;
  wake();
  thread.join();
}

void TcpLinks::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = sys::write(bell.fd(), &one, sizeof one);
}

//===----------------------------------------------------------------------===//
// The rank's side
//===----------------------------------------------------------------------===//

void TcpLinks::setStaging(char *memory, int64_t bytes) {
  // The thread reads it only in operations that start later.
  wire->setStaging(memory, bytes);
}

Transfer &TcpLinks::prepare(int slot, Transfer::Kind kind, const Communicator *group) {
  Transfer &transfer = slots[slot].transfer;
  transfer.reset(kind, group);
  if (group)
    transfer.number = sequences[group->number]++;
  return transfer;
}

void TcpLinks::start(int slot) {
  slots[slot].state.store(Posted, std::memory_order_release);
  wake();
}

bool TcpLinks::poll(int slot) {
  check();
  std::atomic<int> &state = slots[slot].state;
  int now = state.load(std::memory_order_acquire);
  if (now == Complete)
    state.store(Idle, std::memory_order_relaxed);
  return now != Posted;
}

void TcpLinks::check() {
  if (!failing.load(std::memory_order_acquire))
    return;
  seen = true;
  abandon();
  Error error(failure.status, failure.text, /*quiet=*/!failure.loud);
  error.rank = failure.about;
  throw error;
}

void TcpLinks::abandon() {
  bool flies = false;
  for (Slot &slot : slots)
    flies |= slot.state.load() == Posted;
  if (!flies)
    return;
  abandoning = true;
  wake();
  for (int left = 5000; left > 0 && !dropped; --left)
    usleep(1000);
}

Whereabouts TcpLinks::whereabouts(int peer) const {
  const Heard &said = heard[peer];
  auto now = sys::now().time_since_epoch().count();
  return {said.step, said.action, said.at ? static_cast<double>(now - said.at) * 1e-9 : 0};
}

Error TcpLinks::noticed(const Error &error) {
  noticing = {error.status, error.rank >= 0 ? error.rank : rank, false, error.what()};
  notices = true;
  wake();
  for (int left = 6000; left > 0 && !failing; --left)
    usleep(1000);
  seen = true;
  if (!failing)
    return error;
  Error agreed(failure.status, failure.text, /*quiet=*/!failure.loud);
  agreed.rank = failure.about;
  return agreed;
}

void TcpLinks::fail(int status, bool quiet) {
  seen = true;
  // Whoever speaks for all must not be cut short by the failure of those who leave it to him.
  for (int left = 2000; quiet && left > 0 && !failing; --left)
    usleep(1000);
  failStatus = status;
  request = Fail;
  wake();
  for (int left = 1500; left > 0 && !said; --left)
    usleep(1000);
}

void TcpLinks::finish() {
  request = Bye;
  wake();
  for (int left = 5000; left > 0 && !said; --left)
    usleep(1000);
}

//===----------------------------------------------------------------------===//
// The thread's side
//===----------------------------------------------------------------------===//

void TcpLinks::work() {
  constexpr int kEvents = 64;
  epoll_event come[kEvents];
  Wire::Time nextTick = sys::now() + kTick;
  while (!quit) {
    takeRequests();
    decide();
    bool more = sendAll();
    if (!failing && wire->failure()) {
      failure = *wire->failure();
      failedAt = sys::now();
      failing.store(true, std::memory_order_release);
      ring();
    }
    Wire::Time now = sys::now();
    if (now >= nextTick) {
      lookAfter(now);
      nextTick = now + kTick;
      continue;
    }
    if (ending && isOver(now))
      said = true;
    if (failing && !seen && now - failedAt > kGrace) {
      // The rank computes and computes: nobody needs its result any more.
      if (failure.loud)
        std::fprintf(stderr, "dsopt: error: %s\n", failure.text.c_str());
      _exit(failure.status);
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(nextTick - now).count() + 1;
    bool soon = ending || wire->undecided();
    int wait = static_cast<int>(more ? 0 : soon ? 1 : failing ? std::min<int64_t>(left, 100) : left);
    if (Waker::endless() && !soon && !failing && !more)
      wait = -1;
    int count = sys::epoll_wait(events.fd(), come, kEvents, wait);
    wire->setPlace(step.load(std::memory_order_relaxed), action.load(std::memory_order_relaxed));
    for (int i = 0; i < count; ++i) {
      uint32_t peer = come[i].data.u32;
      if (peer == kBell) {
        uint64_t rings;
        [[maybe_unused]] ssize_t bytes = sys::read(bell.fd(), &rings, sizeof rings);
        continue;
      }
      if (peer == kListener) {
        turnAway();
        continue;
      }
      if (come[i].events & EPOLLOUT) {
        watch(static_cast<int>(peer), /*writes=*/false);
        unsent.push_back(static_cast<int>(peer));
      }
      if (come[i].events & ~EPOLLOUT)
        receive(static_cast<int>(peer));
    }
  }
}

/// What the rank has asked for.
void TcpLinks::takeRequests() {
  if (abandoning && !dropped) {
    wire->drop();
    dropped = true;
  }
  for (int slot = 0; slot < Engine::kSlots && !dropped; ++slot)
    if (slots[slot].state.load(std::memory_order_acquire) == Posted && !slots[slot].live) {
      slots[slot].live = true;
      wire->start(slot, slots[slot].transfer);
    }
  if (notices.exchange(false))
    wire->notice(noticing.status, noticing.about, noticing.text);
  if (int asked = request.load(); asked != None && !ending) {
    ending = true;
    endedAt = sys::now();
    wire->end(asked == Bye, failStatus);
  }
}

/// Who says what went wrong.
void TcpLinks::decide() {
  if (wire->asksForFirst())
    wire->firstIsThere(isThere(first));
  wire->decide(sys::now());
}

/// Visitors have seen that this rank is there: all that there is to see.
void TcpLinks::turnAway() {
  while (acceptNow(listener))
    ;
  if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
    epoll_ctl(events.fd(), EPOLL_CTL_DEL, listener.fd(), nullptr);
}

/// A rank that failed reads what its peers send until they are gone too: closing over unread bytes would
/// destroy what they have not read yet. One that is done leaves when their kernels have its last word.
/// Rank 0 is there a while for those whose links to it broke.
bool TcpLinks::isOver(Wire::Time now) {
  bool anyOpen = false, unsaid = false;
  for (int peer = 0; peer < wire->size(); ++peer)
    if (wire->isOpen(peer)) {
      anyOpen = true;
      unsaid |= !wire->flushed(peer) || hasUnacknowledged(sockets[peer].fd());
    }
  if (request.load() == Bye)
    return !unsaid;
  return (!anyOpen && !listener) || (!unsaid && now - endedAt > kDrain);
}

/// Sends what there is; true if a peer could take more when the others have had their turn.
bool TcpLinks::sendAll() {
  for (int peer = wire->nextReady(); peer >= 0; peer = wire->nextReady())
    if (!blocked[peer])
      unsent.push_back(peer);
  size_t left = 0;
  for (size_t i = 0; i < unsent.size(); ++i)
    if (int peer = unsent[i]; wire->isOpen(peer) && send(peer))
      unsent[left++] = peer;
  unsent.resize(left);
  return left > 0;
}

/// True if the peer's turn is over before its bytes are.
bool TcpLinks::send(int peer) {
  fault::point("wire.send");
  for (int64_t turn = 0; turn < kTurnBytes;) {
    Wire::Bytes bytes = wire->outgoing(peer);
    if (bytes.size() == 0)
      return false;
    iovec pieces[2] = {{const_cast<char *>(bytes.head), static_cast<size_t>(bytes.headBytes)},
                       {const_cast<char *>(bytes.body), static_cast<size_t>(bytes.bodyBytes)}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = bytes.bodyBytes ? 2 : 1;
    ssize_t sent = sys::sendmsg(sockets[peer].fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno == EAGAIN) {
      watch(peer, /*writes=*/true);
      return false;
    }
    if (sent < 0) {
      if (!wire->broke(peer, std::strerror(errno)))
        drop(peer);
      return false;
    }
    wire->sent(peer, sent);
    turn += sent;
  }
  return true;
}

void TcpLinks::receive(int peer) {
  fault::point("wire.receive");
  char ahead[kAheadBytes];
  for (int64_t turn = 0; turn < kTurnBytes && wire->isOpen(peer);) {
    Wire::Room room = wire->incoming(peer);
    iovec pieces[2] = {{room.place, static_cast<size_t>(room.bytes)}, {ahead, sizeof ahead}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    ssize_t got = sys::recvmsg(sockets[peer].fd(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return;
    if (got < 0 && wire->broke(peer, std::strerror(errno)))
      return;
    if (got == 0)
      wire->closed(peer, "it closed the connection");
    if (got <= 0)
      break;
    turn += got;
    int64_t first = std::min<int64_t>(got, room.bytes);
    wire->received(peer, first, sys::now());
    wire->feed(peer, ahead, got - first, sys::now());
    if (got < room.bytes + static_cast<int64_t>(sizeof ahead))
      break; // nothing more has come
  }
  if (!wire->isOpen(peer))
    drop(peer);
}

void TcpLinks::drop(int peer) {
  if (sockets[peer])
    epoll_ctl(events.fd(), EPOLL_CTL_DEL, sockets[peer].fd(), nullptr);
  sockets[peer] = Socket();
}

void TcpLinks::watch(int peer, bool writes) {
  epoll_event event{};
  event.events = EPOLLIN | (writes ? EPOLLOUT : 0u);
  event.data.u32 = static_cast<uint32_t>(peer);
  blocked[peer] = writes;
  if (sockets[peer])
    epoll_ctl(events.fd(), EPOLL_CTL_MOD, sockets[peer].fd(), &event);
}

/// Heartbeats, and peers whose hosts are gone.
void TcpLinks::lookAfter(Wire::Time now) {
  wire->tick(now);
  for (int peer = 0; peer < wire->size(); ++peer) {
    if (!wire->isOpen(peer))
      continue;
    Whereabouts said = wire->saidBy(peer);
    heard[peer].step = said.step;
    heard[peer].action = said.action;
    heard[peer].at = wire->heardAt(peer).time_since_epoch().count();
    if (now - wire->heardAt(peer) < kSilence || !isGone(sockets[peer].fd()))
      continue;
    wire->closed(peer, "its host does not answer");
    drop(peer);
  }
}

} // namespace dsopt::runtime
