//===- TcpFrames.cpp - frames to and from the sockets of ranks -------------===//

#include "Comm/TcpState.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/uio.h>

namespace dsopt::runtime {

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
  if (op.transfer.kind == Transfer::Reduce) {
    room = op.ring - part.received % op.ring;
    return staging + part.index * op.ring + part.received % op.ring;
  }
  room = op.transfer.bytes - part.received;
  return op.transfer.target + part.index * op.transfer.bytes + part.received;
}

} // namespace dsopt::runtime
