//===- Members.cpp - which ranks an action talks to -----------------------===//

#include "dsopt/Dialect/Exec/Members.h"

#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

Members::Members(ModuleOp module) {
  if (!module)
    return;
  dp = options::dp(module).value_or(1);
  for (auto communicator : module.getOps<CommunicatorOp>())
    communicators[communicator.getSymNameAttr()] = communicator;
}

const Members::Entry &Members::lookup(Operation *action) {
  StringAttr name = getCommunicator(action).getAttr();
  int64_t position = action->getParentOfType<ProgramOp>().getPosition();
  auto [it, isNew] = entries.try_emplace({name, position});
  if (!isNew)
    return *it->second;
  it->second = std::make_unique<Entry>();
  Entry &entry = *it->second;
  entry.communicator = communicators.lookup(name);
  if (!entry.communicator)
    return entry;
  for (int64_t rank = position * dp; rank < (position + 1) * dp; ++rank) {
    entry.groups.push_back(entry.communicator.groupOf(rank));
    for (int64_t member : entry.groups.back())
      entry.positions.push_back(member / dp);
  }
  llvm::sort(entry.positions);
  entry.positions.erase(llvm::unique(entry.positions), entry.positions.end());
  size_t size = entry.groups.front().size();
  entry.regular =
      size > 0 && llvm::all_of(entry.groups, [&](ArrayRef<int64_t> group) { return group.size() == size; });
  return entry;
}

FailureOr<ArrayRef<SmallVector<int64_t>>> Members::groups(Operation *action) {
  const Entry &entry = lookup(action);
  if (entry.regular)
    return ArrayRef<SmallVector<int64_t>>(entry.groups);
  FlatSymbolRefAttr name = getCommunicator(action);
  if (!entry.communicator)
    return action->emitOpError("is over ") << name << ", which is no communicator of this module", failure();
  auto odd = llvm::find_if(entry.groups, [&](ArrayRef<int64_t> group) {
    return group.empty() || group.size() != entry.groups.front().size();
  });
  int64_t rank = action->getParentOfType<ProgramOp>().getPosition() * dp + (odd - entry.groups.begin());
  InFlightDiagnostic diag = action->emitOpError("is over ")
                            << name << ", but rank " << rank << " of its position ";
  if (odd->empty())
    diag << "is no member of it";
  else
    diag << "is in a group of " << odd->size() << " ranks, the first one in one of "
         << entry.groups.front().size();
  diag.attachNote(CommunicatorOp(entry.communicator).getLoc()) << "the communicator is here";
  return diag;
}

ArrayRef<int64_t> Members::positions(Operation *action) {
  const Entry &entry = lookup(action);
  return entry.regular ? ArrayRef<int64_t>(entry.positions) : ArrayRef<int64_t>();
}

int64_t Members::peer(Operation *transfer) {
  const Entry &entry = lookup(transfer);
  int64_t place = cast<TransferOpInterface>(transfer).getPeer();
  if (!entry.regular || place < 0 || place >= (int64_t)entry.groups.front().size())
    return -1;
  int64_t position = entry.groups.front()[place] / dp;
  bool same =
      llvm::all_of(entry.groups, [&](ArrayRef<int64_t> group) { return group[place] / dp == position; });
  return same ? position : -1;
}

int64_t Members::place(Operation *action) {
  const Entry &entry = lookup(action);
  int64_t first = action->getParentOfType<ProgramOp>().getPosition() * dp, place = -1;
  for (auto [index, group] : llvm::enumerate(entry.groups)) {
    int64_t own = llvm::find(group, first + (int64_t)index) - group.begin();
    if (index > 0 && own != place)
      return -1;
    place = own;
  }
  return place;
}
