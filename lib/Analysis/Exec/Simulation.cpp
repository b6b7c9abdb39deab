//===- Simulation.cpp - all positions' streams against each other ---------===//

#include "dsopt/Analysis/Exec/Simulation.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Before an action ends.
static constexpr double kNever = -1;

static ModuleOp moduleOf(ArrayRef<ProgramOp> programs) {
  return programs.empty() ? ModuleOp() : programs.front()->getParentOfType<ModuleOp>();
}

/// Whether an action waits for other positions.
static bool isRendezvous(Operation *op, exec::Members &members) {
  return getCommunicator(op) && (isa<TransferOpInterface>(op) || members.positions(op).size() > 1);
}

Simulation::Simulation(ArrayRef<ProgramOp> programs, llvm::function_ref<double(Operation *)> cost)
    : members(moduleOf(programs)), streams(moduleOf(programs)), lanes(programs.size() * streams.size()),
      work(programs.size(), 0) {
  for (auto [position, program] : llvm::enumerate(programs)) {
    for (int s = 0; s < streams.size(); ++s)
      lanes[position * streams.size() + s].position = position;
    llvm::DenseMap<Operation *, int64_t> numbers;
    for (Operation &op : getSchedule(ProgramOp(program)).getBody().front()) {
      Item item{&op, (int64_t)ends.size(), false, false};
      if (auto wait = dyn_cast<WaitOp>(op)) {
        item.isWait = true;
        item.action = numbers.lookup(wait.getEvent().getDefiningOp());
      } else {
        item.isRendezvous = !isa<RunOp>(op) && isRendezvous(&op, members);
        numbers[&op] = item.action;
        ends.push_back(kNever);
      }
      lanes[position * streams.size() + streams.of(&op)].items.push_back(item);
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
  int64_t action = lane.items[lane.next++].action;
  lane.arrived = false;
  lane.time = time;
  ends[action] = time;
  latest = std::max(latest, time);
  auto it = waiting.find(action);
  if (it == waiting.end())
    return;
  ready.insert(ready.end(), it->second.begin(), it->second.end());
  waiting.erase(it);
}

/// Whether two actions that arrived complete each other.
static bool doMeet(Operation *op, Operation *other, exec::Members &members) {
  if (getCommunicator(op) != getCommunicator(other))
    return false;
  auto position = [](Operation *action) { return action->getParentOfType<ProgramOp>().getPosition(); };
  if (!isa<TransferOpInterface>(op) || !isa<TransferOpInterface>(other))
    return isa<TransferOpInterface>(op) == isa<TransferOpInterface>(other);
  auto send = dyn_cast<SendOp>(op), sent = dyn_cast<SendOp>(other);
  if ((bool)send == (bool)sent)
    return false;
  auto recv = cast<RecvOp>(send ? other : op);
  return (send ? send : sent).getTagAttr() == recv.getTagAttr() &&
         members.peer(other) == (int64_t)position(op);
}

SmallVector<int64_t> Simulation::partners(int64_t id) {
  Operation *op = head(id);
  SmallVector<int64_t> positions;
  if (isa<TransferOpInterface>(op))
    positions = {lanes[id].position, members.peer(op)};
  else
    llvm::append_range(positions, members.positions(op));
  SmallVector<int64_t> met;
  for (int64_t position : positions) {
    if (position < 0 || position >= (int64_t)work.size())
      return {};
    int64_t found = -1;
    for (int64_t other = position * streams.size(); other < (position + 1) * streams.size() && found < 0;
         ++other) {
      if (lanes[other].arrived &&
          (other == id || (position != lanes[id].position && doMeet(op, head(other), members))))
        found = other;
    }
    if (found < 0)
      return {};
    met.push_back(found);
  }
  return met;
}

bool Simulation::meet(int64_t id, llvm::function_ref<double(Operation *)> cost) {
  lanes[id].arrived = true;
  SmallVector<int64_t> met = partners(id);
  if (met.empty())
    return false;
  double time = 0;
  for (int64_t other : met)
    time = std::max(time, lanes[other].time);
  time += cost(head(id));
  for (int64_t other : met) {
    finish(other, time);
    if (other != id)
      ready.push_back(other);
  }
  return true;
}

void Simulation::advance(int64_t id, llvm::function_ref<double(Operation *)> cost) {
  Lane &lane = lanes[id];
  while (lane.next < lane.items.size() && !lane.arrived) {
    const Item &item = lane.items[lane.next];
    if (item.isWait) {
      if (ends[item.action] == kNever) {
        waiting[item.action].push_back(id);
        return;
      }
      if (double end = ends[item.action]; end > lane.time) {
        held[item.op] = end - lane.time;
        lane.time = end;
      }
      ++lane.next;
      continue;
    }
    if (item.isRendezvous) {
      if (!meet(id, cost))
        return;
      continue;
    }
    double spent = cost(item.op);
    if (streams[id % streams.size()].getKind() == StreamKind::Compute)
      work[lane.position] += spent;
    finish(id, lane.time + spent);
  }
}

int64_t Simulation::blocker(int64_t id) {
  const Lane &own = lanes[id];
  if (own.next >= own.items.size())
    return -1;
  Operation *op = head(id);
  if (auto wait = dyn_cast<WaitOp>(op))
    return own.position * streams.size() + streams.of(wait.getEvent().getDefiningOp());
  SmallVector<int64_t> positions;
  if (isa<TransferOpInterface>(op))
    positions = {members.peer(op)};
  else
    llvm::append_range(positions, members.positions(op));
  // The lane of another position that has the partner still before it.
  for (int64_t position : positions)
    for (int64_t s = 0; s < streams.size() && position >= 0 && position != own.position; ++s) {
      int64_t other = position * streams.size() + s;
      if (other >= (int64_t)lanes.size())
        continue;
      ArrayRef<Item> left = ArrayRef(lanes[other].items).drop_front(lanes[other].next);
      bool arrived = lanes[other].arrived && doMeet(op, left.front().op, members);
      if (!arrived && llvm::any_of(left, [&](const Item &next) { return doMeet(op, next.op, members); }))
        return other;
    }
  return -1;
}

SmallVector<Operation *> Simulation::deadlock() {
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
      heads.push_back(head(*circle));
    return heads;
  }
  return {};
}
