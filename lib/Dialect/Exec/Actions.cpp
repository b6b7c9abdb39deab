//===- Actions.cpp - what passes ask of actions and buffers ---------------===//

#include "dsopt/Dialect/Exec/Actions.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dsopt::exec;

int64_t dsopt::exec::bytesOf(Type type) {
  auto shaped = cast<ShapedType>(type);
  return bytesOf(shaped.getNumElements(), shaped.getElementType());
}

bool dsopt::exec::isAction(Operation *op) { return isa<ActionOpInterface>(op); }

bool dsopt::exec::isComposite(Operation *op) {
  if (auto gather = dyn_cast<GatherOp>(op))
    return gather.getWire().has_value();
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && (reduce.getWire() || reduce.getMethod() != ReductionMethod::ReduceScatter ||
                    (reduce.getFast() && reduce.getAccumulate()));
}

FlatSymbolRefAttr dsopt::exec::getStream(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op))
    return wait.getStreamAttr();
  // Most are: no interface has to be found for it.
  if (auto run = dyn_cast<RunOp>(op))
    return run.getStreamAttr();
  return cast<ActionOpInterface>(op).getStreamAttr();
}

std::string dsopt::exec::communicatorName(dist::AxesAttr axes) {
  if (axes == dist::getDataAxes(axes.getContext()))
    return kDataParallel.str();
  if (axes.getParts().size() == kAxes)
    return kWorld.str();
  return llvm::join(llvm::map_range(axes.getParts(), [](const AxisPart &part) { return describe(part); }),
                    ".");
}

FlatSymbolRefAttr dsopt::exec::getCommunicator(Operation *op) {
  auto communication = dyn_cast<CommunicationOpInterface>(op);
  return communication ? communication.getCommunicatorAttr() : FlatSymbolRefAttr();
}

std::optional<int64_t> dsopt::exec::getOrder(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return collective.getOrder();
  return std::nullopt;
}

bool dsopt::exec::usesBuffer(RunOp run, FlatSymbolRefAttr buffer) {
  return llvm::any_of(run.getBuffers().getAsRange<RefAttr>(),
                      [&](RefAttr ref) { return ref.getBuffer() == buffer; });
}

void dsopt::exec::renumberCollectives(ScheduleOp schedule) {
  uint64_t next = 0;
  for (Operation &op : schedule.getBody().front())
    if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
      if (collective.getOrder() != next)
        collective.setOrder(next);
      ++next;
    }
}

std::string dsopt::exec::describe(PartAttr part) {
  std::string text = ("block " + Twine(part.getBlock()) + " " + stringifyPhase(part.getPhase())).str();
  return part.getPart() ? text + ", part " + std::to_string(part.getPart()) : text;
}

std::string dsopt::exec::describe(Operation *op) {
  auto wait = dyn_cast<WaitOp>(op);
  if (!wait)
    return cast<ActionOpInterface>(op).describeAction();
  Operation *action = wait.getEvent().getDefiningOp();
  return "wait for the " + (action ? describe(action) : "event");
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

SmallVector<MemoryOp> dsopt::exec::getMemories(ProgramOp program) {
  return llvm::to_vector(program.getBody().front().getOps<MemoryOp>());
}

size_t dsopt::exec::memoryOf(BufferOp buffer, ArrayRef<MemoryOp> memories) {
  if (!buffer.getMemory())
    return 0;
  return llvm::find_if(
             memories,
             [&](MemoryOp memory) { return memory.getSymNameAttr() == buffer.getMemoryAttr().getAttr(); }) -
         memories.begin();
}

LogicalResult dsopt::exec::verifySameMemories(ProgramOp first, ProgramOp other) {
  SmallVector<MemoryOp> own = getMemories(first), memories = getMemories(other);
  size_t same = 0;
  while (same < own.size() && same < memories.size() &&
         own[same].getSymName() == memories[same].getSymName() &&
         own[same].getKind() == memories[same].getKind() &&
         own[same].getAlignment() == memories[same].getAlignment() &&
         own[same].getBytes() == memories[same].getBytes())
    ++same;
  if (same == own.size() && same == memories.size())
    return success();
  InFlightDiagnostic diag =
      (same < memories.size() ? memories[same].getOperation() : other.getOperation())->emitOpError();
  diag << (same < memories.size() ? "is memory " : "has no memory ") << same << " of @" << other.getSymName()
       << ", expected the same memories in all programs of position " << first.getPosition();
  diag.attachNote(same < own.size() ? own[same].getLoc() : first.getLoc())
      << "the step's " << (same < own.size() ? "memory" : "program") << " is here";
  return diag;
}

static int64_t variantOf(ProgramOp program) { return program.getVariant().value_or(0); }

SmallVector<int64_t> dsopt::exec::getVariants(ModuleOp module) {
  llvm::SmallVector<int64_t> sizes;
  for (auto program : module.getOps<ProgramOp>())
    if (int64_t size = variantOf(program); size && !llvm::is_contained(sizes, size))
      sizes.push_back(size);
  llvm::sort(sizes);
  return sizes;
}

SmallVector<ProgramOp> dsopt::exec::getPrograms(ModuleOp module, ProgramKind kind, int64_t variant) {
  SmallVector<ProgramOp> programs;
  for (auto program : module.getOps<ProgramOp>())
    if (program.getKind() == kind && variantOf(program) == variant)
      programs.push_back(program);
  llvm::sort(programs, [](ProgramOp a, ProgramOp b) { return a.getPosition() < b.getPosition(); });
  return programs;
}

SmallVector<SmallVector<ProgramOp>> dsopt::exec::getProgramLists(ModuleOp module) {
  SmallVector<SmallVector<ProgramOp>> lists;
  SmallVector<int64_t> sizes = getVariants(module);
  sizes.insert(sizes.begin(), 0);
  for (int64_t size : sizes)
    for (ProgramKind kind : programKinds())
      if (SmallVector<ProgramOp> programs = getPrograms(module, kind, size); !programs.empty())
        lists.push_back(std::move(programs));
  return lists;
}

SmallVector<ProgramOp> dsopt::exec::getStepPrograms(ModuleOp module, int64_t variant) {
  SmallVector<ProgramOp> programs = getPrograms(module, ProgramKind::Step, variant);
  return programs.empty() ? getPrograms(module, ProgramKind::Evaluation, variant) : programs;
}
