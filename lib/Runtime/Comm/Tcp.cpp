//===- Tcp.cpp - operations between ranks over sockets ---------------------===//

#include "Comm/Tcp.h"
#include "Kernels/CPU/Elementwise.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dsopt::runtime {

namespace {
constexpr int64_t kFrameBytes = 1 << 20; ///< of data in one frame, so that slots take turns
constexpr int64_t kTurnBytes = 8 << 20;  ///< read from one peer before the next one's turn
constexpr size_t kMostCredits = 64;      ///< outstanding from one peer: it has fewer operations than that
constexpr int64_t kTextBytes = 4096;
constexpr uint32_t kMagic = 0x6d617264;
using Clock = std::chrono::steady_clock;
/// So long the rank may compute on after a peer failed; all have to end within 10 s.
constexpr std::chrono::seconds kGrace(4);
/// So long a rank that failed listens on, for its peers to hear it.
constexpr std::chrono::milliseconds kDrain(500);
enum FrameKind : uint8_t { Credit, Data, FailFrame, ByeFrame };
} // namespace

/// What precedes everything on the wire. An operation is named by space and number: collectives of a
/// slot are counted, values have tags.
struct TcpLinks::Frame {
  uint32_t magic = kMagic;
  uint8_t frame = Credit, kind = 0, slot = 0, space = 0;
  uint64_t number = 0;
  int64_t total = 0;  ///< bytes of the operation between these two ranks
  int64_t offset = 0; ///< Data: of its first byte; Credit: how far the other may send
  int64_t length = 0; ///< bytes that follow
  bool names(const Frame &other) const {
    return space == other.space && slot == other.slot && number == other.number;
  }
};

/// One peer's share of an operation.
struct TcpLinks::Part {
  int peer = 0;
  const char *source = nullptr;
  int64_t allowed = 0, sent = 0, flushed = 0; ///< of what goes there
  int64_t received = 0;                       ///< of what comes from there
};

struct TcpLinks::Operation {
  std::atomic<int> state{Idle};
  Transfer transfer;
  Frame name;
  std::vector<Part> parts; ///< of the other members
  int64_t ring = 0;        ///< Reduce: bytes of staging for each member
  int64_t added = 0, allowed = 0;
  bool live = false; ///< the thread has it
  bool isDone(const Part *part) const {
    return !part || ((!transfer.sends || part->flushed == transfer.bytes) &&
                     (!transfer.receives || part->received == transfer.bytes));
  }
  Part *part(int peer) {
    for (Part &part : parts)
      if (part.peer == peer)
        return &part;
    return nullptr;
  }
};

struct TcpLinks::Link {
  int rank = 0;
  Socket socket;
  bool open = true, bye = false;
  // What is being sent: `out` first (credits or a header), then `payload`; then what is pending.
  std::string out, pending;
  size_t outDone = 0;
  const char *payload = nullptr;
  int64_t payloadLeft = 0;
  Operation *sending = nullptr;
  bool blocked = false;
  int turn = 0; ///< the slot that comes next
  // What is being received.
  Frame head;
  size_t headDone = 0;
  int64_t bodyLeft = 0;
  Operation *receiving = nullptr;
  std::string text;
  std::vector<Frame> credits; ///< for operations that this rank has not started
};

static std::string calledRank(int rank, const std::vector<std::string> &names) {
  return "rank " + std::to_string(rank) + " on " + names[rank];
}

TcpLinks::TcpLinks(int rank, std::vector<Socket> sockets, std::vector<std::string> names,
                   std::function<void()> ring)
    : thisRank(rank), names(std::move(names)), ring(std::move(ring)),
      bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    links.emplace_back();
    if (static_cast<int>(peer) == rank)
      continue;
    links.back() = std::make_unique<Link>();
    links.back()->rank = static_cast<int>(peer);
    links.back()->socket = std::move(sockets[peer]);
  }
  for (int slot = 0; slot < Engine::kSlots; ++slot)
    operations.push_back(std::make_unique<Operation>());
  sequences.resize(2 * Engine::kSlots);
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TcpLinks::~TcpLinks() {
  quit = true;
  wake();
  thread.join();
}

void TcpLinks::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(bell.fd(), &one, sizeof one);
}

//===----------------------------------------------------------------------===//
// The rank's side
//===----------------------------------------------------------------------===//

void TcpLinks::start(int slot, const Transfer &transfer) {
  Operation &op = *operations[slot];
  op.transfer = transfer;
  op.added = op.allowed = op.ring = 0;
  op.name = Frame();
  op.name.kind = transfer.kind;
  op.name.total = transfer.bytes;
  if (transfer.kind == Transfer::Value) {
    op.name.space = 2;
    op.name.number = transfer.tag;
  } else {
    op.name.space = transfer.world;
    op.name.slot = static_cast<uint8_t>(slot);
    op.name.number = sequences[2 * slot + transfer.world]++;
  }
  int self = thisRank - transfer.group.first;
  op.parts.clear();
  for (int i = 0; i < transfer.group.count; ++i) {
    // Each rank starts with its right neighbour, so that not all send to the same one.
    int index = (self + 1 + i) % transfer.group.count, peer = transfer.group.first + index;
    if (peer == thisRank)
      continue;
    Part part;
    part.peer = peer;
    part.source = transfer.source + (transfer.kind == Transfer::Reduce ? index * transfer.bytes : 0);
    op.parts.push_back(part);
  }
  if (transfer.kind == Transfer::Reduce) {
    op.ring = op.parts.empty() ? transfer.bytes : stagingBytes / transfer.group.count / 64 * 64;
    if (!op.parts.empty() && op.ring == 0)
      throw Error(StatusFailure, "the program has no staging buffer for reductions over TCP");
  }
  op.state.store(Posted, std::memory_order_release);
  wake();
}

bool TcpLinks::poll(int slot) {
  check();
  Operation &op = *operations[slot];
  int state = op.state.load(std::memory_order_acquire);
  if (state == Complete)
    op.state.store(Idle, std::memory_order_relaxed);
  return state != Posted;
}

void TcpLinks::check() {
  if (!failing.load(std::memory_order_acquire))
    return;
  seen = true;
  abandon();
  throw Error(failure.status, failure.text, /*quiet=*/!failure.loud);
}

void TcpLinks::abandon() {
  bool flies = false;
  for (auto &op : operations)
    flies |= op->state.load() == Posted;
  if (!flies)
    return;
  abandoning = true;
  wake();
  for (int left = 5000; left > 0 && !dropped; --left)
    usleep(1000);
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
  std::vector<pollfd> entries;
  std::vector<Link *> polled;
  Clock::time_point failedAt = Clock::time_point::max(), endedAt;
  while (!quit) {
    if (abandoning && !dropped)
      drop();
    for (int slot = 0; slot < Engine::kSlots && !dropped; ++slot)
      if (operations[slot]->state.load(std::memory_order_acquire) == Posted && !operations[slot]->live)
        adopt(slot);
    if (int asked = request.load(); asked != None && !ending) {
      ending = true;
      endedAt = Clock::now();
      say(asked == Bye);
    }
    entries.assign(1, {bell.fd(), POLLIN, 0});
    polled.assign(1, nullptr);
    bool unsent = false;
    for (auto &link : links)
      if (link && link->open) {
        send(*link);
        if (!link->open)
          continue;
        unsent |= !link->out.empty() || !link->pending.empty();
        entries.push_back({link->socket.fd(), static_cast<short>(POLLIN | (link->blocked ? POLLOUT : 0)), 0});
        polled.push_back(link.get());
      }
    // What peers have sent is read until they are gone too: closing over unread bytes would destroy what
    // they have not read yet.
    if (ending && !unsent && (request.load() == Bye || polled.size() == 1 || Clock::now() - endedAt > kDrain))
      said = true;
    ::poll(entries.data(), entries.size(), failing || ending ? 100 : 1000);
    if (entries[0].revents) {
      uint64_t rings;
      [[maybe_unused]] ssize_t bytes = read(bell.fd(), &rings, sizeof rings);
    }
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].revents & ~POLLOUT)
        receive(*polled[i]);
    if (failing && failedAt == Clock::time_point::max())
      failedAt = Clock::now();
    if (failing && !seen && Clock::now() - failedAt > kGrace) {
      // The rank computes and computes: nobody needs its result any more.
      if (failure.loud)
        std::fprintf(stderr, "dsopt: error: %s\n", failure.text.c_str());
      _exit(failure.status);
    }
  }
}

/// Forgets all operations. What a peer still expects of a frame that has begun becomes zeros, what it
/// still sends is not looked at: it will hear that this rank failed.
void TcpLinks::drop() {
  for (auto &op : operations)
    op->live = false;
  for (auto &link : links)
    if (link) {
      link->sending = link->receiving = nullptr;
      link->payload = nullptr;
      link->credits.clear();
    }
  dropped = true;
}

/// Takes over an operation: peers may send, and those that allowed it before are sent to.
void TcpLinks::adopt(int slot) {
  Operation &op = *operations[slot];
  op.live = true;
  op.allowed =
      op.transfer.kind == Transfer::Reduce ? std::min(op.ring, op.transfer.bytes) : op.transfer.bytes;
  if (op.transfer.bytes > 0)
    for (Part &part : op.parts) {
      Link &link = *links[part.peer];
      if (!link.open || link.bye)
        return failed(StatusFailure, link.rank, true,
                      calledRank(link.rank, names) + " ended before the others were done");
      if (op.transfer.receives)
        giveCredit(op, part);
      std::vector<Frame> &credits = link.credits;
      for (size_t i = 0; i < credits.size();)
        if (op.transfer.sends && credits[i].names(op.name)) {
          Frame credit = credits[i];
          credits.erase(credits.begin() + i);
          takeCredit(link, credit);
        } else {
          ++i;
        }
    }
  if (op.parts.empty() && op.transfer.kind == Transfer::Reduce)
    addStaged(op);
  completeIfDone(op);
}

/// A frame behind what is already on its way.
void TcpLinks::control(Link &link, const Frame &frame, const std::string &text) {
  if (!link.open)
    return;
  link.pending.append(reinterpret_cast<const char *>(&frame), sizeof frame);
  link.pending += text;
}

/// The peer may send as far as `op.allowed`.
void TcpLinks::giveCredit(Operation &op, Part &part) {
  Frame credit = op.name;
  credit.frame = Credit;
  credit.offset = op.allowed;
  control(*links[part.peer], credit);
}

void TcpLinks::takeCredit(Link &link, const Frame &frame) {
  if (dropped)
    return;
  for (auto &op : operations) {
    if (!op->live || !op->transfer.sends || !frame.names(op->name))
      continue;
    Part *part = op->part(link.rank);
    if (!part)
      continue;
    if (frame.total != op->name.total || frame.kind != op->name.kind)
      return failed(StatusFailure, thisRank, false,
                    "operations do not match: " + calledRank(link.rank, names) + " has " +
                        std::to_string(frame.total) + " bytes, rank " + std::to_string(thisRank) +
                        " expected " + std::to_string(op->name.total));
    part->allowed = std::clamp(frame.offset, part->allowed, op->name.total);
    return;
  }
  for (Frame &credit : link.credits)
    if (credit.names(frame)) {
      credit = frame;
      return;
    }
  if (link.credits.size() >= kMostCredits)
    return lost(link, "it does not keep to the protocol");
  link.credits.push_back(frame);
}

bool TcpLinks::nextFrame(Link &link) {
  if (!link.pending.empty()) {
    link.out.swap(link.pending);
    return true;
  }
  for (int i = 0; i < Engine::kSlots && !ending; ++i) {
    Operation &op = *operations[(link.turn + i) % Engine::kSlots];
    Part *part = op.live && op.transfer.sends ? op.part(link.rank) : nullptr;
    if (!part || part->sent >= part->allowed)
      continue;
    Frame frame = op.name;
    frame.frame = Data;
    frame.offset = part->sent;
    frame.length = std::min(kFrameBytes, part->allowed - part->sent);
    link.out.assign(reinterpret_cast<const char *>(&frame), sizeof frame);
    link.payload = part->source + part->sent;
    link.payloadLeft = frame.length;
    link.sending = &op;
    part->sent += frame.length;
    link.turn = (link.turn + i + 1) % Engine::kSlots;
    return true;
  }
  return false;
}

/// Sends what there is until the socket takes no more or others should have their turn.
void TcpLinks::send(Link &link) {
  link.blocked = false;
  for (int64_t turn = 0; turn < kTurnBytes;) {
    if (link.outDone == link.out.size() && link.payloadLeft == 0) {
      link.out.clear();
      link.outDone = 0;
      if (Operation *op = std::exchange(link.sending, nullptr)) {
        Part *part = op->part(link.rank);
        part->flushed = part->sent;
        completeIfDone(*op);
      }
      if (!nextFrame(link))
        return;
    }
    static char zeros[64 << 10]; // of a frame whose operation is given up
    iovec pieces[2] = {{link.out.data() + link.outDone, link.out.size() - link.outDone},
                       {const_cast<char *>(link.payload), static_cast<size_t>(link.payloadLeft)}};
    if (!link.payload)
      pieces[1] = {zeros, static_cast<size_t>(std::min<int64_t>(link.payloadLeft, sizeof zeros))};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    ssize_t sent = sendmsg(link.socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno != EAGAIN)
      return lost(link, std::strerror(errno));
    if (sent < 0)
      break;
    turn += sent;
    size_t ofOut = std::min<size_t>(sent, pieces[0].iov_len);
    link.outDone += ofOut;
    if (link.payload)
      link.payload += sent - ofOut;
    link.payloadLeft -= sent - ofOut;
  }
  link.blocked = true;
}

void TcpLinks::receive(Link &link) {
  for (int64_t turn = 0; turn < kTurnBytes && link.open;) {
    char text[kTextBytes];
    char *place = reinterpret_cast<char *>(&link.head) + link.headDone;
    int64_t room = sizeof link.head - link.headDone;
    bool body = room == 0;
    if (body && link.receiving) {
      place = placeOf(*link.receiving, *link.receiving->part(link.rank), room);
      room = std::min(room, link.bodyLeft);
    } else if (body) {
      place = text;
      room = std::min<int64_t>(sizeof text, link.bodyLeft);
    }
    ssize_t got = recv(link.socket.fd(), place, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return;
    if (got <= 0)
      return lost(link, got == 0 ? "it closed the connection" : std::strerror(errno));
    turn += got;
    if (!body) {
      link.headDone += got;
      if (link.headDone == sizeof link.head)
        handle(link);
      continue;
    }
    link.bodyLeft -= got;
    if (Operation *op = link.receiving) {
      if (link.bodyLeft == 0) {
        link.receiving = nullptr;
        link.headDone = 0;
      }
      op->part(link.rank)->received += got;
      if (op->transfer.kind == Transfer::Reduce)
        addStaged(*op);
      completeIfDone(*op);
      continue;
    }
    if (link.head.frame == FailFrame)
      link.text.append(text, got);
    if (link.bodyLeft > 0)
      continue;
    if (link.head.frame == FailFrame)
      handleFailure(link);
    link.headDone = 0;
  }
}

/// A header is complete.
void TcpLinks::handle(Link &link) {
  const Frame &frame = link.head;
  if (frame.magic == kMagic && frame.frame == Credit && frame.length == 0) {
    link.headDone = 0;
    return takeCredit(link, frame);
  }
  if (frame.magic == kMagic && frame.frame == ByeFrame && frame.length == 0) {
    link.headDone = 0;
    link.bye = true;
    return;
  }
  if (frame.magic == kMagic && frame.frame == FailFrame && frame.length >= 0 && frame.length <= kTextBytes) {
    link.text.clear();
    link.bodyLeft = frame.length;
    return frame.length ? void() : handleFailure(link);
  }
  if (frame.magic == kMagic && frame.frame == Data)
    for (auto &op : operations) {
      Part *part = op->live && op->transfer.receives && frame.names(op->name) ? op->part(link.rank) : nullptr;
      if (!part || frame.offset != part->received || frame.length <= 0 ||
          frame.length > op->allowed - part->received)
        continue;
      link.bodyLeft = frame.length;
      link.receiving = op.get();
      return;
    }
  if (frame.magic == kMagic && frame.frame == Data && dropped && frame.length > 0 &&
      frame.length <= kFrameBytes) {
    link.bodyLeft = frame.length;
    return;
  }
  lost(link, "it does not keep to the protocol");
}

/// The peer has said that it, or one it heard of, failed.
void TcpLinks::handleFailure(Link &link) {
  const Frame &frame = link.head;
  link.headDone = 0;
  link.bye = true;
  int about = frame.total >= 0 && frame.total < static_cast<int64_t>(names.size())
                  ? static_cast<int>(frame.total)
                  : link.rank;
  bool loud = frame.offset != 0;
  int status = frame.number >= StatusInput && frame.number <= StatusInterrupted
                   ? static_cast<int>(frame.number)
                   : int(StatusFailure);
  failed(status, about, loud && about != thisRank, loud ? link.text : calledRank(about, names) + " failed");
}

/// Where the next bytes from a peer belong, and how many fit there.
char *TcpLinks::placeOf(Operation &op, Part &part, int64_t &room) const {
  int64_t index = part.peer - op.transfer.group.first;
  switch (op.transfer.kind) {
  case Transfer::Reduce:
    room = op.ring - part.received % op.ring;
    return staging + index * op.ring + part.received % op.ring;
  case Transfer::Value:
    index = 0;
    [[fallthrough]];
  default:
    room = op.transfer.bytes - part.received;
    return op.transfer.target + index * op.transfer.bytes + part.received;
  }
}

/// Adds what all peers have sent, in pieces that need not be small, and lets them go on.
void TcpLinks::addStaged(Operation &op) {
  const Transfer &transfer = op.transfer;
  int64_t ready = transfer.bytes;
  for (const Part &part : op.parts)
    ready = std::min(ready, part.received);
  if (ready < transfer.bytes && ready - op.added < op.ring / 2)
    return;
  int self = thisRank - transfer.group.first;
  std::vector<const void *> &members = sources;
  members.resize(transfer.group.count);
  while (op.added < ready) {
    int64_t end = std::min(ready, (op.added / op.ring + 1) * op.ring);
    if (end < transfer.bytes)
      end = end / 64 * 64;
    if (end <= op.added)
      break;
    for (int i = 0; i < transfer.group.count; ++i)
      members[i] = i == self ? transfer.source + i * transfer.bytes + op.added
                             : staging + i * op.ring + op.added % op.ring;
    treeSum(transfer.type, members.data(), transfer.group.count, transfer.target + op.added,
            (end - op.added) / bytesOf(transfer.type), transfer.accumulate);
    op.added = end;
  }
  int64_t allowed = std::min(transfer.bytes, op.added + op.ring);
  if (allowed == op.allowed)
    return;
  op.allowed = allowed;
  for (Part &part : op.parts)
    giveCredit(op, part);
}

void TcpLinks::completeIfDone(Operation &op) {
  const Transfer &transfer = op.transfer;
  if (!op.live || (transfer.kind == Transfer::Reduce && op.added < transfer.bytes))
    return;
  for (const Part &part : op.parts)
    if (!op.isDone(&part))
      return;
  op.live = false;
  op.state.store(Complete, std::memory_order_release);
  ring();
}

void TcpLinks::lost(Link &link, const std::string &why) {
  link.open = false;
  link.socket = Socket();
  if (ending)
    return;
  int64_t now = step.load(std::memory_order_relaxed);
  // A peer that is done may leave while this rank still waits for others.
  for (auto &op : operations)
    link.bye &= !op->live || op->isDone(op->part(link.rank));
  if (!link.bye)
    failed(StatusFailure, link.rank, true,
           calledRank(link.rank, names) + " ended without a word or cannot be reached any more (" + why +
               "), " +
               (now < 0 ? "before the first step or after the last" : "in step " + std::to_string(now)));
}

void TcpLinks::failed(int status, int about, bool loud, const std::string &text) {
  // Once this rank fails by itself, what becomes of the others is a consequence.
  if (failing || dropped)
    return;
  failure = {status, about, loud, text};
  failing.store(true, std::memory_order_release);
  ring();
}

/// Tells all peers that this rank is done, or that it failed.
void TcpLinks::say(bool bye) {
  Frame frame;
  frame.frame = bye ? ByeFrame : FailFrame;
  std::string text;
  if (!bye) {
    frame.number = failStatus;
    frame.total = failing ? failure.about : thisRank;
    frame.offset = failing && failure.loud;
    if (frame.offset)
      text = failure.text.substr(0, kTextBytes);
    frame.length = static_cast<int64_t>(text.size());
  }
  for (auto &link : links)
    if (link)
      control(*link, frame, text);
}

} // namespace dsopt::runtime
