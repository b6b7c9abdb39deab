//===- Wire.cpp - operations between ranks as bytes of links ---------------===//

#include "Comm/WireState.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

void Transfer::reset(Kind newKind, const Communicator *newGroup) {
  kind = newKind;
  group = newGroup;
  sends.clear();
  receives.clear();
  accumulate = false;
}

Wire::Wire(int rank, std::vector<std::string> hosts, const std::vector<bool> &linked, Time now,
           std::function<void(int)> completed)
    : thisRank(rank), names(std::move(hosts)), completed(std::move(completed)), sink(64 << 10) {
  links.resize(linked.size());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank)
      continue;
    if (!linked[peer])
      continue;
    links[peer] = std::make_unique<Link>();
    links[peer]->rank = peer;
    links[peer]->lastHeard = links[peer]->lastBeat = now;
  }
  for (int slot = 0; slot < Engine::kSlots; ++slot) {
    operations.push_back(std::make_unique<Operation>());
    operations.back()->slot = slot;
    operations.back()->outOf.assign(size(), -1);
    operations.back()->inOf.assign(size(), -1);
  }
}

Wire::~Wire() = default;

bool Wire::isOpen(int peer) const { return links[peer] && links[peer]->open; }
Wire::Time Wire::heardAt(int peer) const { return links[peer]->lastHeard; }
Whereabouts Wire::saidBy(int peer) const { return links[peer]->said; }

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The link to a peer that an operation needs; null where that is a failure.
Wire::Link *Wire::linkOf(int peer, const char *what) {
  Link *link = links[peer].get();
  if (!link)
    notice(StatusFailure, thisRank,
           "rank " + std::to_string(thisRank) + " and " + calledRank(peer, names) +
               " are not connected, but the program has them " + what);
  else if (!link->open || link->bye)
    notice(StatusFailure, peer, calledRank(peer, names) + " ended before the others were done");
  return state == Fine ? link : nullptr;
}

void Wire::addOut(Operation &op, int peer, const char *source, int64_t bytes, int round) {
  if (bytes == 0 || !linkOf(peer, "send to each other"))
    return;
  Out out;
  out.peer = peer;
  out.source = source;
  out.bytes = bytes;
  out.round = round;
  op.outOf[peer] = static_cast<int>(op.outs.size());
  op.outs.push_back(out);
  ++op.open;
}

void Wire::addIn(Operation &op, int peer, char *target, int64_t bytes, int64_t member, int round) {
  if (bytes == 0 || !linkOf(peer, "receive from each other"))
    return;
  In in;
  in.peer = peer;
  in.target = target;
  in.bytes = bytes;
  in.member = member;
  in.round = round;
  op.inOf[peer] = static_cast<int>(op.ins.size());
  op.ins.push_back(in);
  ++op.open;
}

void Wire::start(int slot, const Transfer &transfer) {
  if (dropped || ending || state != Fine)
    return;
  Operation &op = *operations[slot];
  for (const Out &out : op.outs)
    op.outOf[out.peer] = -1;
  for (const In &in : op.ins)
    op.inOf[in.peer] = -1;
  op.outs.clear();
  op.ins.clear();
  op.roundOut.clear();
  op.roundIn.clear();
  op.open = op.arrived = 0;
  op.added = op.next = op.round = 0;
  op.transfer = &transfer;
  op.name = Frame();
  op.name.kind = transfer.kind;
  op.name.number = transfer.number;
  if (transfer.kind != Transfer::Value)
    op.name.space = static_cast<uint16_t>(transfer.group->number);
  op.live = true;
  const Communicator *group = transfer.group;
  int64_t bytes = transfer.bytes;
  switch (transfer.kind) {
  case Transfer::Gather:
  case Transfer::AllToAll:
  case Transfer::Value:
    for (const Transfer::Piece &piece : transfer.sends)
      addOut(op, piece.peer, piece.source, piece.bytes, -1);
    for (const Transfer::Piece &piece : transfer.receives)
      addIn(op, piece.peer, piece.target, piece.bytes, 0, -1);
    break;
  case Transfer::Reduce:
    op.ring = op.block = bytes;
    if (group->size() > 1) {
      int64_t room = stagingBytes / group->size() / 64 * 64;
      if (room == 0)
        return notice(StatusFailure, thisRank, "the program has no staging buffer for reductions over TCP");
      op.block = std::max<int64_t>(room / 128 * 64, 64);
      op.ring = room / op.block * op.block;
    }
    op.next = std::min(bytes, op.block);
    // Each rank starts with its right neighbour, so that not all send to the same one.
    for (int i = 1; i < group->size(); ++i) {
      int member = (group->self + i) % group->size();
      addOut(op, group->ranks[member], transfer.source + member * bytes, bytes, -1);
      addIn(op, group->ranks[member], nullptr, bytes, member, -1);
    }
    break;
  case Transfer::Exchange:
    op.rounds.startExchange(*group, bytes, transfer.target);
    startRounds(op);
    break;
  case Transfer::Agreement:
    op.rounds.startAgreement(*group, transfer.record, transfer.shape);
    startRounds(op);
    break;
  }
  if (state == Fine)
    adopt(op);
}

void Wire::startRounds(Operation &op) {
  for (int i = 0; i < op.rounds.count(); ++i) {
    const Rounds::Round &round = op.rounds.round(i);
    op.roundOut.push_back(round.to < 0 ? -1 : static_cast<int>(op.outs.size()));
    if (round.to >= 0)
      addOut(op, round.to, nullptr, round.sends, i);
    op.roundIn.push_back(round.from < 0 ? -1 : static_cast<int>(op.ins.size()));
    if (round.from >= 0)
      addIn(op, round.from, op.rounds.incoming(i), round.receives, 0, i);
    if (state != Fine)
      return;
  }
}

/// Peers may send, and those that allowed it, or sent, before are answered.
void Wire::adopt(Operation &op) {
  if (op.collective())
    for (int rank : op.transfer->group->ranks) {
      if (!links[rank])
        continue;
      Link &link = *links[rank];
      for (const Frame &credit : link.credits)
        if (credit.names(op.name) && (credit.kind != op.name.kind || !op.out(rank)))
          return void(mismatch(op, link, credit, op.out(rank) ? op.out(rank)->bytes : 0));
      for (const Link::Early &early : link.early)
        if (early.frame.names(op.name) && (early.frame.kind != op.name.kind || !op.in(rank)))
          return void(mismatch(op, link, early.frame, op.in(rank) ? op.in(rank)->bytes : 0));
    }
  for (Out &out : op.outs) {
    Link &link = *links[out.peer];
    if (out.round >= 0 && out.bytes <= kEagerBytes)
      out.allowed = out.bytes;
    for (size_t i = 0; i < link.credits.size(); ++i)
      if (link.credits[i].names(op.name)) {
        Frame credit = link.credits[i];
        link.credits.erase(link.credits.begin() + i);
        takeCredit(link, credit);
        break;
      }
    makeReady(link);
  }
  for (In &in : op.ins) {
    in.allowed = op.transfer->kind == Transfer::Reduce ? std::min(op.ring, in.bytes) : in.bytes;
    if (!in.eager()) {
      giveCredit(op, in);
      continue;
    }
    Link &link = *links[in.peer];
    for (size_t i = 0; i < link.early.size(); ++i)
      if (link.early[i].frame.names(op.name)) {
        Link::Early early = std::move(link.early[i]);
        link.early.erase(link.early.begin() + i);
        if (early.frame.total != in.bytes)
          return void(mismatch(op, link, early.frame, in.bytes));
        std::memcpy(in.target, early.data.data(), early.data.size());
        in.received = in.bytes;
        --op.open;
        break;
      }
  }
  if (op.transfer->kind == Transfer::Reduce && op.ins.empty() && op.transfer->bytes > 0)
    addStaged(op);
  advance(op);
  completeIfDone(op);
}

/// Goes through the rounds whose bytes are there.
void Wire::advance(Operation &op) {
  for (; op.round < static_cast<int>(op.roundIn.size()); ++op.round) {
    int out = op.roundOut[op.round], in = op.roundIn[op.round];
    if (out >= 0 && static_cast<size_t>(out) < op.outs.size() && !op.outs[out].source) {
      op.outs[out].source = op.rounds.outgoing(op.round);
      makeReady(*links[op.outs[out].peer]);
    }
    if (in >= 0 && static_cast<size_t>(in) < op.ins.size() && op.ins[in].received < op.ins[in].bytes)
      return;
    op.rounds.take(op.round);
  }
}

/// Adds what all peers have sent, a block at a time, and lets them go on.
void Wire::addStaged(Operation &op) {
  const Transfer &transfer = *op.transfer;
  int count = transfer.group->size();
  sources.resize(count);
  do {
    for (int i = 0; i < count; ++i)
      sources[i] = i == transfer.group->self ? transfer.source + i * transfer.bytes + op.added
                                             : staging + i * op.ring + op.added % op.ring;
    treeSum(transfer.type, sources.data(), count, transfer.target + op.added,
            (op.next - op.added) / bytesOf(transfer.type), transfer.accumulate);
    op.added = op.next;
    op.next = std::min(transfer.bytes, op.added + op.block);
    int64_t allowed = std::min(transfer.bytes, op.added + op.ring);
    op.arrived = 0;
    for (In &in : op.ins) {
      op.arrived += in.received >= op.next;
      if (allowed == in.allowed)
        continue;
      in.allowed = allowed;
      giveCredit(op, in);
    }
  } while (op.arrived == op.ins.size() && op.added < transfer.bytes);
}

void Wire::completeIfDone(Operation &op) {
  if (!op.live || op.open > 0 || op.round < static_cast<int>(op.roundIn.size()) ||
      (op.transfer->kind == Transfer::Reduce && op.added < op.transfer->bytes))
    return;
  op.live = false;
  completed(op.slot);
}

/// What a peer still expects of a frame that has begun is kept for it; what it still sends is not looked
/// at: it will hear that this rank failed.
void Wire::drop() {
  dropped = true;
  for (auto &op : operations)
    op->live = false;
  for (auto &link : links)
    if (link) {
      if (link->payloadLeft > 0)
        link->kept.assign(link->payload, link->payloadLeft);
      link->payload = link->kept.data();
      link->sending = link->receiving = nullptr;
      link->credits.clear();
      link->early.clear();
    }
}

void Wire::tick(Time now) {
  for (auto &link : links)
    if (link && link->open && !ending && now - link->lastBeat >= kHeartbeat && link->pending.empty()) {
      link->lastBeat = now;
      Frame frame;
      frame.frame = Frame::Heartbeat;
      frame.number = static_cast<uint64_t>(step);
      frame.total = action;
      control(*link, frame);
    }
}

} // namespace dsopt::runtime
