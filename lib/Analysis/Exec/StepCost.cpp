//===- StepCost.cpp - how long a step takes, by its runs' flops -----------===//

#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Analysis/Exec/Simulation.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

ActionTimes::ActionTimes(ModuleOp module) : members(module) {
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  device = deviceOf(target);
  threads = target ? target.getThreads() : 1;
  // Segments are functions of MLIR or, once lowered, of LLVM.
  for (Operation &segment : module.getOps())
    if (auto counted = segment.getAttrOfType<IntegerAttr>(kFlopsAttr)) {
      auto timed = segment.getAttrOfType<IntegerAttr>(kPicosecondsAttr);
      flops[SymbolTable::getSymbolName(&segment)] = counted.getInt();
      seconds[SymbolTable::getSymbolName(&segment)] =
          timed ? timed.getInt() / 1e12 : counted.getInt() / (kAssumedFlopsPerThread * threads);
    }
}

double ActionTimes::flopsOf(ActionOpInterface action) const {
  FlatSymbolRefAttr segment = action.getCalledSegment();
  return segment ? flops.lookup(segment.getAttr()) : 0;
}

double ActionTimes::ofWork(ActionOpInterface action) const {
  if (FlatSymbolRefAttr segment = action.getCalledSegment())
    return seconds.lookup(segment.getAttr());
  // Each of its fp32 buffers is read and, but for the gradient, written: by the device or, of what lies
  // there, by the host.
  auto update = dyn_cast<UpdateOp>(*action);
  if (!update || !device)
    return 0;
  double bytes = update.getElements() * 4.0 * (2 * update.getBuffers().size() - 1);
  return update.getStream() == kHostStream ? bytes / (kAssumedMemoryBytesPerSecond * threads)
                                           : bytes / (device->memory * kReachedOfLimit) + kLaunchSeconds;
}

double ActionTimes::ofMove(ActionOpInterface action) {
  std::optional<MovedBytes> moved = action.getMoved();
  if (!moved)
    return 0;
  // Between the host and a disk nothing goes by the device's bus.
  if (!isa<CommunicationOpInterface>(*action))
    return moved->bytes /
           (device && getStream(action).getValue() != kDiskStream ? device->host : kAssumedBytesPerSecond);
  FailureOr<int64_t> count = isa<CollectiveOpInterface>(*action) ? members.count(action) : 2;
  double others = failed(count) ? 0 : moved->toNext ? *count > 1 : *count - 1;
  return others * moved->bytes / (device ? device->links : kAssumedBytesPerSecond);
}

StepCost dsopt::estimateStep(ModuleOp module) {
  ActionTimes times(module);
  SmallVector<ProgramOp> programs = getStepPrograms(module);
  Simulation simulation(programs, [&](Operation *op) { return times.ofWork(cast<ActionOpInterface>(op)); });
  Simulation moving(programs, [&](Operation *op) {
    auto action = cast<ActionOpInterface>(op);
    return times.ofWork(action) + times.ofMove(action);
  });
  StepCost cost;
  cost.moving = moving.end();
  cost.length = simulation.end();
  double busy = 0;
  for (size_t position = 0; position < programs.size(); ++position)
    busy += simulation.busy(position);
  for (ProgramOp program : programs)
    program.walk([&](ActionOpInterface action) { cost.flops += times.flopsOf(action); });
  if (cost.length > 0)
    cost.bubble = 1 - busy / (cost.length * programs.size());
  return cost;
}
