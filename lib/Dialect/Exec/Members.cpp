//===- Members.cpp - which ranks an action talks to -----------------------===//

#include "dsopt/Dialect/Exec/Members.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

Members::Members(ModuleOp module) {
  if (!module)
    return;
  ranks = dist::getGrid(module);
  for (auto communicator : module.getOps<CommunicatorOp>())
    communicators[communicator.getSymNameAttr()] = communicator.getAxes();
}

const Members::Entry &Members::lookup(Operation *action) {
  StringAttr name = getCommunicator(action).getAttr();
  int64_t position = action->getParentOfType<ProgramOp>().getPosition();
  auto [it, isNew] = entries.try_emplace({name, position});
  if (!isNew)
    return *it->second;
  it->second = std::make_unique<Entry>();
  Entry &entry = *it->second;
  entry.axes = communicators.lookup(name);
  if (!entry.axes)
    return entry;
  ArrayRef<AxisPart> parts = entry.axes.getParts();
  entry.group = ranks.group(position * ranks.perPosition(), parts);
  if (parts.empty() || parts.front().axis != Axis::pp) {
    entry.positions = {position};
    return entry;
  }
  // Axes are in their order: that of positions is the first.
  for (int64_t other = 0; other < ranks.size(parts.front()); ++other)
    entry.positions.push_back(
        ranks.coordinate(entry.group[other * (entry.group.size() / ranks.size(parts.front()))], Axis::pp));
  return entry;
}

FailureOr<dist::AxesAttr> Members::axes(Operation *action) {
  if (dist::AxesAttr axes = lookup(action).axes)
    return axes;
  return action->emitOpError("is over ")
             << getCommunicator(action) << ", which is no communicator of this module",
         failure();
}

FailureOr<int64_t> Members::count(Operation *action) {
  FailureOr<dist::AxesAttr> found = axes(action);
  return failed(found) ? FailureOr<int64_t>() : ranks.count(found->getParts());
}

FailureOr<std::vector<int>> Members::group(Operation *action) {
  return failed(axes(action)) ? FailureOr<std::vector<int>>() : lookup(action).group;
}

ArrayRef<int64_t> Members::positions(Operation *action) { return lookup(action).positions; }

/// Whether all ranks of a position have the same coordinates along the axes.
static bool isByPosition(const Grid &grid, dist::AxesAttr axes) {
  return llvm::all_of(axes.getParts(),
                      [&](const AxisPart &part) { return part.axis == Axis::pp || grid.size(part) == 1; });
}

int64_t Members::peer(Operation *transfer) {
  const Entry &entry = lookup(transfer);
  int64_t place = cast<TransferOpInterface>(transfer).getPeer();
  if (!entry.axes || place < 0 || place >= (int64_t)entry.group.size() || !isByPosition(ranks, entry.axes))
    return -1;
  return ranks.coordinate(entry.group[place], Axis::pp);
}

int64_t Members::place(Operation *action) {
  const Entry &entry = lookup(action);
  if (!entry.axes || !isByPosition(ranks, entry.axes))
    return -1;
  int64_t first = action->getParentOfType<ProgramOp>().getPosition() * ranks.perPosition();
  return ranks.index(first, entry.axes.getParts());
}
