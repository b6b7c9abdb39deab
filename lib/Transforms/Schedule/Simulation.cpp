//===- Simulation.cpp - all positions' streams against each other ---------===//

#include "dsopt/Transforms/Schedule/Simulation.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

Simulation::Simulation(ArrayRef<ProgramOp> programs, llvm::function_ref<double(Operation *)> cost)
    : lanes(programs.size() * kStreams), work(programs.size(), 0) {
  for (auto [position, program] : llvm::enumerate(programs)) {
    for (int s = 0; s < kStreams; ++s)
      lanes[position * kStreams + s].position = position;
    for (Operation &op : getSchedule(ProgramOp(program)).getBody().front()) {
      int64_t id = lane(position, getStream(&op));
      lanes[id].items.push_back(&op);
      laneOf[&op] = id;
    }
  }
  for (int64_t id = lanes.size(); id-- > 0;)
    ready.push_back(id);
  while (!ready.empty()) {
    int64_t id = ready.back();
    ready.pop_back();
    advance(id, cost);
  }
}

void Simulation::finish(int64_t id, double time) {
  Lane &lane = lanes[id];
  Operation *op = lane.items[lane.next++];
  lane.arrived = false;
  lane.time = time;
  ends[op] = time;
  latest = std::max(latest, time);
  auto it = waiting.find(op);
  if (it == waiting.end())
    return;
  ready.insert(ready.end(), it->second.begin(), it->second.end());
  waiting.erase(it);
}

bool Simulation::meet(int64_t id, llvm::function_ref<double(Operation *)> cost) {
  Lane &own = lanes[id];
  Operation *op = own.items[own.next];
  own.arrived = true;
  if (isa<AgreeOp>(op)) {
    double time = 0;
    SmallVector<int64_t> members;
    for (int64_t other = 0, count = lanes.size(); other < count; ++other) {
      const Lane &lane = lanes[other];
      if (lane.arrived && isa<AgreeOp>(lane.items[lane.next])) {
        members.push_back(other);
        time = std::max(time, lane.time);
      }
    }
    if (members.size() != work.size())
      return false;
    time += cost(op);
    for (int64_t other : members) {
      finish(other, time);
      if (other != id)
        ready.push_back(other);
    }
    return true;
  }
  auto send = dyn_cast<SendOp>(op);
  int64_t peer = send ? send.getPeer() : cast<RecvOp>(op).getPeer();
  if (peer < 0 || peer >= (int64_t)work.size())
    return false;
  int64_t otherId = lane(peer, send ? Stream::Recv : Stream::Send);
  Lane &other = lanes[otherId];
  if (!other.arrived)
    return false;
  Operation *partner = other.items[other.next];
  int64_t back = send ? (isa<RecvOp>(partner) ? (int64_t)cast<RecvOp>(partner).getPeer() : -1)
                      : (isa<SendOp>(partner) ? (int64_t)cast<SendOp>(partner).getPeer() : -1);
  if (back != own.position)
    return false;
  double time = std::max(own.time, other.time) + cost(op);
  finish(id, time);
  finish(otherId, time);
  ready.push_back(otherId);
  return true;
}

void Simulation::advance(int64_t id, llvm::function_ref<double(Operation *)> cost) {
  Lane &lane = lanes[id];
  while (lane.next < lane.items.size() && !lane.arrived) {
    Operation *op = lane.items[lane.next];
    if (auto wait = dyn_cast<WaitOp>(op)) {
      Operation *action = wait.getEvent().getDefiningOp();
      auto it = ends.find(action);
      if (it == ends.end()) {
        waiting[action].push_back(id);
        return;
      }
      lane.time = std::max(lane.time, it->second);
      ++lane.next;
      continue;
    }
    if (isa<SendOp, RecvOp, AgreeOp>(op)) {
      if (!meet(id, cost))
        return;
      continue;
    }
    double spent = cost(op);
    if (getStream(op) == Stream::Compute)
      work[lane.position] += spent;
    finish(id, lane.time + spent);
  }
}

int64_t Simulation::blocker(int64_t id) const {
  const Lane &own = lanes[id];
  if (own.next >= own.items.size())
    return -1;
  Operation *op = own.items[own.next];
  if (auto wait = dyn_cast<WaitOp>(op))
    return laneOf.lookup(wait.getEvent().getDefiningOp());
  if (auto send = dyn_cast<SendOp>(op))
    return send.getPeer() < work.size() ? lane(send.getPeer(), Stream::Recv) : -1;
  if (auto recv = dyn_cast<RecvOp>(op))
    return recv.getPeer() < work.size() ? lane(recv.getPeer(), Stream::Send) : -1;
  if (isa<AgreeOp>(op))
    for (int64_t position = 0, count = work.size(); position < count; ++position) {
      const Lane &comm = lanes[lane(position, Stream::Comm)];
      if (comm.next < comm.items.size() && !(comm.arrived && isa<AgreeOp>(comm.items[comm.next])))
        return lane(position, Stream::Comm);
    }
  return -1;
}

SmallVector<Operation *> Simulation::deadlock() const {
  for (int64_t start = 0, count = lanes.size(); start < count; ++start) {
    if (lanes[start].next >= lanes[start].items.size())
      continue;
    // Each stuck head waits for another: following them ends in a circle, or at
    // a lane that has nothing left to do.
    SmallVector<int64_t> path;
    int64_t id = start;
    while (id >= 0 && !llvm::is_contained(path, id) && lanes[id].next < lanes[id].items.size()) {
      path.push_back(id);
      id = blocker(id);
    }
    auto circle = llvm::find(path, id);
    if (circle == path.end())
      circle = path.begin();
    SmallVector<Operation *> heads;
    for (; circle != path.end(); ++circle)
      heads.push_back(lanes[*circle].items[lanes[*circle].next]);
    return heads;
  }
  return {};
}
