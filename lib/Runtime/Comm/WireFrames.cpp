//===- WireFrames.cpp - frames to and from the links of a rank -------------===//

#include "Comm/WireState.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dsopt::runtime {

static constexpr const char *kBreaks = " does not keep to the protocol";

//===----------------------------------------------------------------------===//
// To a peer
//===----------------------------------------------------------------------===//

void Wire::makeReady(Link &link) {
  if (link.queued)
    return;
  link.queued = true;
  ready.push_back(link.rank);
}

int Wire::nextReady() {
  if (ready.empty())
    return -1;
  int peer = ready.back();
  ready.pop_back();
  links[peer]->queued = false;
  return peer;
}

/// A frame behind what is already on its way.
void Wire::control(Link &link, Frame frame, const std::string &text) {
  if (!link.open)
    return;
  frame.seal(text.data());
  link.pending.append(reinterpret_cast<const char *>(&frame), sizeof frame);
  link.pending += text;
  makeReady(link);
}

/// The peer may send as far as `in.allowed`.
void Wire::giveCredit(Operation &op, const In &in) {
  Frame credit = op.name;
  credit.frame = Frame::Credit;
  credit.total = in.bytes;
  credit.offset = in.allowed;
  control(*links[in.peer], credit);
  ++frames;
}

bool Wire::nextFrame(Link &link) {
  if (!link.pending.empty()) {
    link.out.swap(link.pending);
    return true;
  }
  for (int i = 0; i < Engine::kSlots && !ending; ++i) {
    Operation &op = *operations[(link.turn + i) % Engine::kSlots];
    Out *out = op.out(link.rank);
    if (!out || !out->source || out->sent >= out->allowed)
      continue;
    int64_t most = op.transfer->kind == Transfer::Reduce ? kReduceBytes : kFrameBytes;
    Frame frame = op.name;
    frame.frame = Frame::Data;
    frame.total = out->bytes;
    frame.offset = out->sent;
    frame.length = std::min(most, out->allowed - out->sent);
    link.payload = out->source + out->sent;
    link.payloadLeft = frame.length;
    frame.seal(link.payload);
    link.out.assign(reinterpret_cast<const char *>(&frame), sizeof frame);
    link.sending = &op;
    out->sent += frame.length;
    link.turn = (link.turn + i + 1) % Engine::kSlots;
    ++frames;
    return true;
  }
  return false;
}

Wire::Bytes Wire::outgoing(int peer) {
  Link &link = *links[peer];
  Bytes bytes;
  if (!link.open || (link.outDone == link.out.size() && link.payloadLeft == 0 && !nextFrame(link)))
    return bytes;
  bytes.head = link.out.data() + link.outDone;
  bytes.headBytes = static_cast<int64_t>(link.out.size() - link.outDone);
  bytes.body = link.payload;
  bytes.bodyBytes = link.payloadLeft;
  return bytes;
}

void Wire::sent(int peer, int64_t bytes) {
  Link &link = *links[peer];
  int64_t ofHead = std::min<int64_t>(bytes, link.out.size() - link.outDone);
  link.outDone += ofHead;
  link.payloadLeft -= bytes - ofHead;
  link.payload += bytes - ofHead;
  if (link.outDone < link.out.size() || link.payloadLeft > 0)
    return;
  link.out.clear();
  link.outDone = 0;
  link.payload = nullptr;
  if (Operation *op = std::exchange(link.sending, nullptr)) {
    Out *out = op->out(peer);
    out->flushed = out->sent;
    op->open -= out->flushed == out->bytes;
    completeIfDone(*op);
  }
}

bool Wire::flushed(int peer) const {
  const Link *link = links[peer].get();
  return !link || !link->open || (link->out.empty() && link->pending.empty() && link->payloadLeft == 0);
}

//===----------------------------------------------------------------------===//
// From a peer
//===----------------------------------------------------------------------===//

/// Where the rest of the frame belongs, and how much fits there.
Wire::Room Wire::placeOf(const Operation &op, const In &in) const {
  int64_t at = in.received + links[in.peer]->bodyDone;
  if (op.transfer->kind == Transfer::Reduce)
    return {staging + in.member * op.ring + at % op.ring, op.ring - at % op.ring};
  return {in.target + at, in.bytes - at};
}

Wire::Room Wire::incoming(int peer) {
  Link &link = *links[peer];
  if (link.deaf)
    return {sink.data(), static_cast<int64_t>(sink.size())};
  if (link.headDone < sizeof link.head)
    return {reinterpret_cast<char *>(&link.head) + link.headDone,
            static_cast<int64_t>(sizeof link.head - link.headDone)};
  int64_t left = link.head.length - link.bodyDone;
  Room room{sink.data(), static_cast<int64_t>(sink.size())};
  if (link.receiving)
    room = placeOf(*link.receiving, *link.receiving->in(peer));
  else if (!link.text.empty())
    room = {link.text.data() + link.bodyDone, left};
  room.bytes = std::min(room.bytes, left);
  return room;
}

void Wire::received(int peer, int64_t bytes, Time now) {
  Link &link = *links[peer];
  link.lastHeard = now;
  if (link.deaf)
    return;
  if (link.headDone < sizeof link.head) {
    link.headDone += bytes;
    if (link.headDone == sizeof link.head)
      handle(link);
    return;
  }
  XXH3_64bits_update(&link.check, incoming(peer).place, bytes);
  link.bodyDone += bytes;
  if (link.bodyDone == link.head.length)
    handleBody(link);
}

void Wire::feed(int peer, const char *data, int64_t bytes, Time now) {
  while (bytes > 0 && links[peer]->open) {
    Room room = incoming(peer);
    int64_t some = std::min(bytes, room.bytes);
    std::memcpy(room.place, data, some);
    received(peer, some, now);
    data += some;
    bytes -= some;
  }
}

/// Peers that do not want the same; true.
bool Wire::mismatch(const Operation &op, const Link &link, const Frame &frame, int64_t expected) {
  static constexpr const char *kKinds[] = {"a gather",    "a reduction",  "an all-to-all",
                                           "an exchange", "an agreement", "a value"};
  auto described = [](uint8_t kind, int64_t bytes) {
    return std::string(kind <= Transfer::Value ? kKinds[kind] : "something") + " of " +
           std::to_string(bytes) + " bytes";
  };
  notice(StatusFailure, thisRank,
         "operations do not match: " + calledRank(link.rank, names) + " has " +
             described(frame.kind, frame.total) + " for rank " + std::to_string(thisRank) +
             ", which expected " + described(op.name.kind, expected) + ", " + inStep());
  return true;
}

void Wire::takeCredit(Link &link, const Frame &frame) {
  if (dropped)
    return;
  for (auto &op : operations) {
    if (!op->live || !frame.names(op->name))
      continue;
    Out *out = op->out(link.rank);
    if (!out && !op->collective())
      continue;
    if (!out || frame.kind != op->name.kind || frame.total != out->bytes)
      return void(mismatch(*op, link, frame, out ? out->bytes : 0));
    out->allowed = std::clamp(frame.offset, out->allowed, out->bytes);
    return makeReady(link);
  }
  for (Frame &credit : link.credits)
    if (credit.names(frame)) {
      credit = frame;
      return;
    }
  if (link.credits.size() >= kMostAhead)
    return distrust(link, calledRank(link.rank, names) + kBreaks);
  link.credits.push_back(frame);
}

/// A header is complete.
void Wire::handle(Link &link) {
  const Frame &frame = link.head;
  if (!frame.intact())
    return distrust(link, "what " + calledRank(link.rank, names) + " sent to rank " +
                              std::to_string(thisRank) + " arrived damaged");
  link.bodyDone = 0;
  link.text.clear();
  XXH3_64bits_reset(&link.check);
  switch (frame.frame) {
  case Frame::Data:
    if (frame.length <= 0 || frame.length > kFrameBytes)
      break;
    return handleData(link);
  case Frame::Fail:
    if (frame.length < 0 || frame.length > kTextBytes)
      break;
    link.text.resize(frame.length);
    return frame.length ? void() : handleBody(link);
  case Frame::Credit:
    if (frame.length != 0)
      break;
    link.headDone = 0;
    return takeCredit(link, frame);
  case Frame::Bye:
    if (frame.length != 0)
      break;
    link.headDone = 0;
    link.bye = true;
    return;
  case Frame::Heartbeat:
    if (frame.length != 0)
      break;
    link.headDone = 0;
    link.said.step = static_cast<int64_t>(frame.number);
    link.said.action = frame.total;
    return;
  }
  distrust(link, calledRank(link.rank, names) + kBreaks);
}

void Wire::handleData(Link &link) {
  const Frame &frame = link.head;
  for (auto &op : operations) {
    if (!op->live || !frame.names(op->name))
      continue;
    In *in = op->in(link.rank);
    if (!in && !op->collective())
      continue;
    if (!in || frame.kind != op->name.kind || frame.total != in->bytes) {
      mismatch(*op, link, frame, in ? in->bytes : 0);
      return;
    }
    if (frame.offset != in->received || frame.length > in->allowed - in->received ||
        (in->eager() && frame.length != in->bytes))
      return distrust(link, calledRank(link.rank, names) + kBreaks);
    link.receiving = op.get();
    return;
  }
  if (dropped || state != Fine)
    return;
  // A record for what this rank has not started yet.
  bool record = frame.kind == Transfer::Exchange || frame.kind == Transfer::Agreement;
  if (!record || frame.offset != 0 || frame.length != frame.total || frame.length > kEagerBytes ||
      link.early.size() >= kMostAhead)
    return distrust(link, calledRank(link.rank, names) + kBreaks);
  link.text.resize(frame.length);
}

/// A frame is complete.
void Wire::handleBody(Link &link) {
  const Frame &frame = link.head;
  link.headDone = 0;
  if (frame.length > 0 && XXH3_64bits_digest(&link.check) != frame.bodyCheck)
    return distrust(link, std::to_string(frame.length) + " bytes that " + calledRank(link.rank, names) +
                              " sent to rank " + std::to_string(thisRank) + " arrived damaged");
  if (frame.frame == Frame::Fail)
    return handleFailure(link);
  if (std::exchange(link.receiving, nullptr))
    return frameReceived(link);
  if (dropped || link.text.empty())
    return;
  // The operation may have started since the frame began.
  for (auto &op : operations)
    if (In *in = op->in(link.rank); in && frame.names(op->name)) {
      if (!in->eager() || frame.kind != op->name.kind || frame.total != in->bytes || in->received > 0) {
        mismatch(*op, link, frame, in->bytes);
        return;
      }
      std::memcpy(in->target, link.text.data(), in->bytes);
      return frameReceived(link);
    }
  link.early.push_back({frame, std::move(link.text)});
}

/// The frame's bytes lie where its operation wants them.
void Wire::frameReceived(Link &link) {
  for (auto &live : operations) {
    Operation &op = *live;
    In *in = op.in(link.rank);
    if (!in || !link.head.names(op.name))
      continue;
    int64_t before = in->received;
    in->received += link.head.length;
    op.open -= in->received == in->bytes;
    if (op.transfer->kind == Transfer::Reduce) {
      op.arrived += before < op.next && in->received >= op.next;
      if (op.arrived == op.ins.size())
        addStaged(op);
    }
    advance(op);
    completeIfDone(op);
    return;
  }
}

} // namespace dsopt::runtime
