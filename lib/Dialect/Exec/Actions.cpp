//===- Actions.cpp - what passes ask of actions and buffers ---------------===//

#include "dsopt/Dialect/Exec/Actions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dsopt::exec;

int64_t dsopt::exec::bytesOf(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() * ((shaped.getElementTypeBitWidth() + 7) / 8);
}

bool dsopt::exec::isAction(Operation *op) {
  return isa<InputOp, RunOp, GatherOp, ReduceOp, AllToAllOp, AddOp, SendOp, RecvOp, NormOp, AgreeOp, UpdateOp,
             MapOp, FoldOp>(op);
}

Stream dsopt::exec::getStream(Operation *op) {
  return TypeSwitch<Operation *, Stream>(op)
      .Case<WaitOp, InputOp, RunOp, GatherOp, ReduceOp, AllToAllOp, AddOp, SendOp, RecvOp, NormOp, AgreeOp,
            UpdateOp, MapOp, FoldOp>([](auto action) { return action.getStream(); });
}

FlatSymbolRefAttr dsopt::exec::getCommunicator(Operation *op) {
  return TypeSwitch<Operation *, FlatSymbolRefAttr>(op)
      .Case<GatherOp, ReduceOp, AllToAllOp, SendOp, RecvOp, AgreeOp>(
          [](auto action) { return action.getCommunicatorAttr(); })
      .Default([](Operation *) { return FlatSymbolRefAttr(); });
}

std::optional<int64_t> dsopt::exec::getOrder(Operation *op) {
  return TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<GatherOp, ReduceOp, AllToAllOp, AgreeOp>([](auto action) { return (int64_t)action.getOrder(); })
      .Default([](Operation *) { return std::nullopt; });
}

LogicalResult dsopt::exec::verifyNoRelease(ScheduleOp schedule) {
  for (auto release : schedule.getBody().front().getOps<ReleaseOp>())
    return release.emitOpError("is left in a schedule whose gathers should be shared: expected share-gathers "
                               "before this pass");
  return success();
}

bool dsopt::exec::usesBuffer(RunOp run, FlatSymbolRefAttr buffer) {
  return llvm::any_of(run.getBuffers().getAsRange<RefAttr>(),
                      [&](RefAttr ref) { return ref.getBuffer() == buffer; });
}

void dsopt::exec::renumberCollectives(ScheduleOp schedule) {
  int64_t next = 0;
  for (Operation &op : schedule.getBody().front())
    TypeSwitch<Operation *>(&op).Case<GatherOp, ReduceOp, AllToAllOp, AgreeOp>([&](auto collective) {
      if ((int64_t)collective.getOrder() != next)
        collective.setOrder(next);
      ++next;
    });
}

std::string dsopt::exec::describe(PartAttr part) {
  return ("block " + Twine(part.getBlock()) + " " + stringifyPhase(part.getPhase())).str();
}

std::string dsopt::exec::describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  TypeSwitch<Operation *>(op)
      .Case([&](InputOp a) { os << "input \"" << a.getInput() << "\" of micro-batch " << a.getMicroBatch(); })
      .Case([&](RunOp a) {
        os << "run of @" << a.getSegment();
        if (PartAttr part = a.getPartAttr())
          os << " for " << describe(part);
        os << " on micro-batch " << a.getMicroBatch();
      })
      .Case([&](GatherOp a) { os << "gather into " << a.getTarget().getBuffer(); })
      .Case([&](ReduceOp a) { os << "reduce into " << a.getTarget().getBuffer(); })
      .Case([&](AllToAllOp a) { os << "all-to-all into " << a.getTarget().getBuffer(); })
      .Case([&](AddOp a) { os << "add into " << a.getTarget().getBuffer(); })
      .Case([&](SendOp a) { os << "send of \"" << a.getTag() << "\" to position " << a.getPeer(); })
      .Case([&](RecvOp a) { os << "recv of \"" << a.getTag() << "\" from position " << a.getPeer(); })
      .Case([&](NormOp a) { os << "norm of " << a.getGradient().getBuffer(); })
      .Case([&](AgreeOp) { os << "agree"; })
      .Case([&](FoldOp) { os << "fold of running statistics"; })
      .Case([&](UpdateOp a) { os << "update of @" << a.getBucket(); })
      .Case([&](MapOp a) { os << "map by @" << a.getKernel(); })
      .Case([&](WaitOp a) {
        Operation *action = a.getEvent().getDefiningOp();
        os << "wait for the " << (action ? describe(action) : "event");
      });
  return text;
}

ScheduleOp dsopt::exec::getSchedule(ProgramOp program) {
  auto schedules = program.getBody().front().getOps<ScheduleOp>();
  return schedules.empty() ? ScheduleOp() : *schedules.begin();
}

int64_t dsopt::exec::getMicroBatches(ArrayRef<ProgramOp> programs) {
  int64_t count = 0;
  for (ProgramOp program : programs)
    if (ScheduleOp schedule = getSchedule(program))
      for (auto run : schedule.getBody().front().getOps<RunOp>())
        count = std::max<int64_t>(count, run.getMicroBatch() + 1);
  return count;
}

static int64_t variantOf(ProgramOp program) {
  auto variant = program->getAttrOfType<IntegerAttr>(kVariantAttr);
  return variant ? variant.getInt() : 0;
}

SmallVector<int64_t> dsopt::exec::getVariants(ModuleOp module) {
  llvm::SmallVector<int64_t> sizes;
  for (auto program : module.getOps<ProgramOp>())
    if (int64_t size = variantOf(program); size && !llvm::is_contained(sizes, size))
      sizes.push_back(size);
  llvm::sort(sizes);
  return sizes;
}

SmallVector<ProgramOp> dsopt::exec::getPrograms(ModuleOp module, bool evaluate, int64_t variant) {
  SmallVector<ProgramOp> programs;
  for (auto program : module.getOps<ProgramOp>())
    if (program->hasAttr(kEvaluatesAttr) == evaluate && variantOf(program) == variant)
      programs.push_back(program);
  llvm::sort(programs, [](ProgramOp a, ProgramOp b) { return a.getPosition() < b.getPosition(); });
  return programs;
}

SmallVector<SmallVector<ProgramOp>> dsopt::exec::getProgramLists(ModuleOp module) {
  SmallVector<SmallVector<ProgramOp>> lists;
  SmallVector<int64_t> sizes = getVariants(module);
  sizes.insert(sizes.begin(), 0);
  for (int64_t size : sizes)
    for (bool evaluate : {false, true})
      if (SmallVector<ProgramOp> programs = getPrograms(module, evaluate, size); !programs.empty())
        lists.push_back(std::move(programs));
  return lists;
}

SmallVector<ProgramOp> dsopt::exec::getStepPrograms(ModuleOp module, int64_t variant) {
  SmallVector<ProgramOp> programs = getPrograms(module, /*evaluate=*/false, variant);
  return programs.empty() ? getPrograms(module, /*evaluate=*/true, variant) : programs;
}
