//===- WireFailures.cpp - what goes wrong on a wire, and who says so -------===//

#include "Comm/WireState.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

namespace dsopt::runtime {

std::string Wire::inStep() const {
  return step < 0 ? "before the first step or after the last" : "in step " + std::to_string(step);
}

//===----------------------------------------------------------------------===//
// What this rank notices
//===----------------------------------------------------------------------===//

void Wire::notice(int status, int about, const std::string &text) {
  // Once this rank fails by itself, what becomes of the others is a consequence.
  if (state != Fine || dropped || ending)
    return;
  failed = {status, about, false, text};
  state = Noticed;
  if (thisRank == 0)
    return decided(/*loud=*/true);
  // Where not all are connected, some hear of it from this rank alone.
  tellFailure(/*said=*/false);
}

void Wire::closed(int peer, const std::string &why) { lost(*links[peer], why); }

void Wire::lost(Link &link, const std::string &why) {
  if (!link.open)
    return;
  link.open = false;
  if (ending)
    return;
  // A peer that is done may leave while this rank still waits for others.
  for (auto &op : operations) {
    const Out *out = op->out(link.rank);
    const In *in = op->in(link.rank);
    link.bye &= (!out || out->flushed == out->bytes) && (!in || in->received == in->bytes);
  }
  if (!link.bye)
    unreachable(link, why);
}

void Wire::unreachable(const Link &link, const std::string &why) {
  notice(StatusFailure, link.rank,
         calledRank(link.rank, names) + " ended without a word or cannot be reached any more from " +
             calledRank(thisRank, names) + " (" + why + "), " + inStep());
}

bool Wire::broke(int peer, const std::string &why) {
  Link &link = *links[peer];
  if (link.broken || link.bye || ending) {
    lost(link, why);
    return false;
  }
  link.broken = true;
  unreachable(link, why);
  return true;
}

void Wire::ignore(int peer) { links[peer]->deaf = true; }

/// What comes from a peer is not looked at any more. What goes to it still does, so that it hears why.
void Wire::distrust(Link &link, const std::string &what) {
  link.deaf = true;
  link.receiving = nullptr;
  notice(StatusFailure, link.rank, what + ", " + inStep());
}

//===----------------------------------------------------------------------===//
// Who says so
//===----------------------------------------------------------------------===//

bool Wire::isLost(int peer) const { return links[peer] && !links[peer]->open; }

/// Nothing can be expected of it any more.
bool Wire::isDone(int peer) const {
  if (!links[peer])
    return false; // not known here
  return links[peer]->bye || (isLost(peer) && (peer > 0 || first == Gone));
}

void Wire::decide(Time now) {
  if (!undecided())
    return;
  if (noticedAt == Time())
    noticedAt = now;
  int speaker = 0;
  while (speaker < thisRank && isDone(speaker))
    ++speaker;
  int before = std::min(thisRank - speaker, kUnsaidTurns);
  if (before == 0 || now - noticedAt > kUnsaid + before * kUnsaidTurn)
    return decided(/*loud=*/true);
  // It knows as well, but cannot be heard.
  const Link *link = links[speaker].get();
  if (link && (link->open ? link->deaf && flushed(speaker) : first == There))
    decided(/*loud=*/false);
}

void Wire::decided(bool loud) {
  state = Decided;
  failed.loud = loud;
  if (loud)
    tellFailure(/*said=*/true);
}

/// Tells all peers of the failure.
void Wire::tellFailure(bool said) {
  Frame frame;
  frame.frame = Frame::Fail;
  frame.number = failed.status;
  frame.total = failed.about;
  frame.offset = said;
  std::string text = failed.text.substr(0, kTextBytes);
  frame.length = static_cast<int64_t>(text.size());
  for (auto &link : links)
    if (link)
      control(*link, frame, text);
}

/// A peer has told of a failure.
void Wire::handleFailure(Link &link) {
  const Frame &frame = link.head;
  bool said = frame.offset != 0;
  if (dropped || ending || state == Decided || (state == Noticed && !said))
    return;
  int about = frame.total >= 0 && frame.total < size() ? static_cast<int>(frame.total) : link.rank;
  int status = frame.number >= StatusInput && frame.number <= StatusInterrupted
                   ? static_cast<int>(frame.number)
                   : int(StatusFailure);
  failed = {status, about, false, link.text.empty() ? calledRank(about, names) + " failed" : link.text};
  if (said) {
    decided(/*loud=*/false);
    return tellFailure(/*said=*/true);
  }
  state = Noticed;
  if (thisRank == 0)
    decided(/*loud=*/true);
  else
    tellFailure(/*said=*/false);
}

void Wire::end(bool bye, int status) {
  if (ending)
    return;
  if (bye) {
    Frame frame;
    frame.frame = Frame::Bye;
    for (auto &link : links)
      if (link)
        control(*link, frame);
  } else {
    // Its own failure, of which it speaks itself.
    if (state != Decided)
      failed = {status, thisRank, false, ""};
    failed.status = status;
    tellFailure(/*said=*/true);
  }
  ending = true;
}

} // namespace dsopt::runtime
