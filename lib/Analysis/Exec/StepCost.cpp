//===- StepCost.cpp - how long a step takes, by its runs' flops -----------===//

#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Analysis/Exec/Simulation.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Target.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What actions take.
class ActionTimes {
public:
  explicit ActionTimes(ModuleOp module) : members(module) {
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    device = deviceOf(target);
    // Segments are functions of MLIR or, once lowered, of LLVM.
    for (Operation &segment : module.getOps())
      if (auto counted = segment.getAttrOfType<IntegerAttr>(kFlopsAttr)) {
        auto timed = segment.getAttrOfType<IntegerAttr>(kPicosecondsAttr);
        flops[SymbolTable::getSymbolName(&segment)] = counted.getInt();
        seconds[SymbolTable::getSymbolName(&segment)] =
            timed ? timed.getInt() / 1e12
                  : counted.getInt() / (kAssumedFlopsPerThread * (target ? target.getThreads() : 1));
      }
  }

  template <typename Op> double flopsOf(Op run) const { return flops.lookup(run.getSegmentAttr().getAttr()); }
  double ofWork(Operation *op) const {
    if (auto run = dyn_cast<RunOp>(op))
      return seconds.lookup(run.getSegmentAttr().getAttr());
    if (auto transform = dyn_cast<TransformOp>(op))
      return seconds.lookup(transform.getSegmentAttr().getAttr());
    // Each of its fp32 buffers is read and, but for the gradient, written.
    if (auto update = dyn_cast<UpdateOp>(op); update && device)
      return update.getElements() * 4.0 * (2 * update.getBuffers().size() - 1) /
                 (device->memory * kReachedOfLimit) +
             kLaunchSeconds;
    return 0;
  }
  /// Of what a rank sends or copies.
  double ofMove(Operation *op) {
    double links = device ? device->links : kAssumedBytesPerSecond,
           host = device ? device->host : kAssumedBytesPerSecond;
    if (auto gather = dyn_cast<GatherOp>(op))
      return others(op) * gather.getBytes() / links;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return others(op) * bytesOf(reduce.getElements(), reduce.getType()) / links;
    if (auto exchange = dyn_cast<AllToAllOp>(op))
      return others(op) * exchange.getBytes() / links;
    if (auto copy = dyn_cast<CopyOp>(op))
      return copy.getBytes() / host;
    if (auto send = dyn_cast<SendOp>(op))
      return send.getBytes() / links;
    if (auto recv = dyn_cast<RecvOp>(op))
      return recv.getBytes() / links;
    return 0;
  }

private:
  double others(Operation *op) {
    auto groups = members.groups(op);
    return failed(groups) ? 0.0 : groups->front().size() - 1.0;
  }

  Members members;
  std::optional<DeviceLimits> device;
  llvm::DenseMap<StringAttr, double> flops, seconds; ///< of segments
};
} // namespace

StepCost dsopt::estimateStep(ModuleOp module) {
  ActionTimes times(module);
  SmallVector<ProgramOp> programs = getStepPrograms(module);
  Simulation simulation(programs, [&](Operation *op) { return times.ofWork(op); });
  Simulation moving(programs, [&](Operation *op) { return times.ofWork(op) + times.ofMove(op); });
  StepCost cost;
  cost.moving = moving.end();
  cost.length = simulation.end();
  double busy = 0;
  for (size_t position = 0; position < programs.size(); ++position)
    busy += simulation.busy(position);
  for (ProgramOp program : programs)
    program.walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op).Case<RunOp, TransformOp>(
          [&](auto run) { cost.flops += times.flopsOf(run); });
    });
  if (cost.length > 0)
    cost.bubble = 1 - busy / (cost.length * programs.size());
  return cost;
}
