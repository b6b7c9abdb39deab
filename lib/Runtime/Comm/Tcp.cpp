//===- Tcp.cpp - operations between ranks over sockets ---------------------===//

#include "Comm/TcpState.h"
#include "Kernels/CPU/Elementwise.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dsopt::runtime {

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
  sequences.resize(Engine::kCommunicators);
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
  op.parts.clear();
  auto addPart = [&](int peer, int64_t index, int64_t offset) {
    Part part;
    part.peer = peer;
    part.index = index;
    part.source = transfer.source + offset;
    op.parts.push_back(part);
  };
  if (transfer.kind == Transfer::Value) {
    op.name.number = transfer.tag;
    addPart(transfer.peer, 0, 0);
  } else {
    const Communicator &group = *transfer.group;
    op.name.space = static_cast<uint16_t>(group.number);
    op.name.number = sequences[group.number]++;
    bool parts = transfer.kind == Transfer::Reduce || transfer.kind == Transfer::AllToAll;
    // Each rank starts with its right neighbour, so that not all send to the same one.
    for (int i = 1; i < group.size(); ++i) {
      int index = (group.self + i) % group.size();
      addPart(group.ranks[index], index, parts ? index * transfer.bytes : 0);
    }
  }
  if (transfer.kind == Transfer::Reduce) {
    op.ring = op.parts.empty() ? transfer.bytes : stagingBytes / transfer.group->size() / 64 * 64;
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
  Error error(failure.status, failure.text, /*quiet=*/!failure.loud);
  error.rank = failure.about;
  throw error;
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

/// Adds what all peers have sent, in pieces that need not be small, and lets them go on.
void TcpLinks::addStaged(Operation &op) {
  const Transfer &transfer = op.transfer;
  int64_t ready = transfer.bytes;
  for (const Part &part : op.parts)
    ready = std::min(ready, part.received);
  if (ready < transfer.bytes && ready - op.added < op.ring / 2)
    return;
  int count = transfer.group->size();
  std::vector<const void *> &members = sources;
  members.resize(count);
  while (op.added < ready) {
    int64_t end = std::min(ready, (op.added / op.ring + 1) * op.ring);
    if (end < transfer.bytes)
      end = end / 64 * 64;
    if (end <= op.added)
      break;
    for (int i = 0; i < count; ++i)
      members[i] = i == transfer.group->self ? transfer.source + i * transfer.bytes + op.added
                                             : staging + i * op.ring + op.added % op.ring;
    treeSum(transfer.type, members.data(), count, transfer.target + op.added,
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
