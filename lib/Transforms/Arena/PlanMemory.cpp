//===- PlanMemory.cpp - every buffer's place in its memory ----------------===//

#include "dsopt/Analysis/Exec/Packing.h"
#include "dsopt/Analysis/Exec/Traffic.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Arena/Passes.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_PLANMEMORY
#include "dsopt/Transforms/Arena/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Live bytes at the worst moment.
struct Peak {
  int64_t bytes = 0;                     ///< with alignment and padding
  std::map<BufferKind, int64_t> classes; ///< without
  Operation *action = nullptr;           ///< null: persistent state alone
};

class PlanMemory : public dsopt::impl::PlanMemoryBase<PlanMemory> {
public:
  using PlanMemoryBase::PlanMemoryBase;
  void runOnOperation() override;

private:
  /// The programs of one position.
  LogicalResult plan(ArrayRef<ProgramOp> programs, LifeAnalysis &analysis);
  void describeUse(MemoryOp memory, int64_t arena, const Peak &peak);
  void describeTraffic(ProgramOp program, AccessAnalysis &analysis);
  void refuse(ProgramOp program, int64_t arena, const Peak &peak);
};
} // namespace

/// What bytes are counted as.
static auto classes() {
  return llvm::map_range(llvm::seq_inclusive(0u, getMaxEnumValForBufferKind()),
                         [](unsigned kind) { return static_cast<BufferKind>(kind); });
}

/// Classes that few programs have: those without them do not mention them.
static bool isRare(BufferKind kind) {
  return kind == BufferKind::Constants || kind == BufferKind::Secondary || kind == BufferKind::Packed ||
         kind == BufferKind::Cache;
}

/// The moment with the most live bytes of a memory, in order of issue.
static Peak findPeak(const ProgramLife &life, size_t memory) {
  std::vector<int64_t> changes(life.timeline.entries().size() + 1, 0); ///< of live bytes, by entry
  Peak peak;
  for (const BufferLife &buffer : life.lives) {
    if (buffer.memory != memory)
      continue;
    int64_t stride = BufferOp(buffer.buffer).getStride();
    if (buffer.persistent)
      peak.bytes += stride * BufferOp(buffer.buffer).getSlots();
    for (const Episode &episode : buffer.episodes) {
      changes[episode.first] += stride;
      changes[episode.last + 1] -= stride;
    }
  }
  int64_t live = peak.bytes, worst = -1;
  for (auto [entry, change] : llvm::enumerate(changes))
    if ((live += change) > peak.bytes) {
      peak.bytes = live;
      worst = entry;
    }
  if (worst >= 0)
    peak.action = life.timeline.entries()[worst].op;
  for (const BufferLife &buffer : life.lives) {
    if (buffer.memory != memory)
      continue;
    BufferOp op = buffer.buffer;
    int64_t slots = buffer.persistent ? (int64_t)op.getSlots()
                                      : llvm::count_if(buffer.episodes, [&](const Episode &episode) {
                                          return episode.first <= worst && worst <= episode.last;
                                        });
    if (slots)
      peak.classes[op.getKind()] += payloadOf(op) * slots;
  }
  return peak;
}

namespace {
/// Bytes of one rank in a step, by class.
struct Sent {
  using Classes = std::map<StringRef, int64_t>;
  Classes bytes;        ///< what the ends of buckets add is `padding`
  Classes logical;      ///< of classes that are compressed: what they stand for
  Classes betweenNodes; ///< what has to leave the node for them; empty without nodes
};
} // namespace

static Sent sumTraffic(ArrayRef<SentBytes> all) {
  Sent sent;
  llvm::StringSet<> compressed;
  for (const SentBytes &one : all) {
    StringRef name = stringifyTraffic(one.kind);
    sent.bytes[name] += one.bytes;
    sent.bytes["padding"] += one.padding;
    sent.logical[name] += one.logical.value_or(one.bytes);
    if (one.logical)
      compressed.insert(name);
    if (one.betweenNodes)
      sent.betweenNodes[name] += *one.betweenNodes;
  }
  for (auto entry = sent.logical.begin(); entry != sent.logical.end();)
    entry = compressed.contains(entry->first) ? std::next(entry) : sent.logical.erase(entry);
  return sent;
}

/// Bytes that one rank copies in a step, by the kind of memory that they go to.
static std::map<StringRef, int64_t> countCopies(ProgramOp program, AccessAnalysis &analysis) {
  std::map<StringRef, int64_t> copied;
  SmallVector<MemoryOp> memories = getMemories(program);
  for (auto copy : getSchedule(program).getBody().front().getOps<CopyOp>()) {
    BufferOp target = analysis.buffer(program, copy.getTarget().getBuffer().getAttr());
    copied[stringifyMemoryKind(memories[memoryOf(target, memories)].getKind())] += copy.getBytes();
  }
  return copied;
}

static DictionaryAttr toDictionary(MLIRContext *context, const std::map<StringRef, int64_t> &entries) {
  Builder builder(context);
  NamedAttrList list;
  for (auto [name, value] : entries)
    list.set(name, builder.getI64IntegerAttr(value));
  return list.getDictionary(context);
}

void PlanMemory::refuse(ProgramOp program, int64_t arena, const Peak &peak) {
  ModuleOp module = getOperation();
  int64_t limit = options::device_memory(module);
  InFlightDiagnostic diag = emitError(program.getLoc())
                            << "the model needs " << arena << " bytes of memory on each rank of stage "
                            << program.getPosition() << ", more than the " << limit
                            << " that -device-memory allows";
  if (peak.action)
    diag << "; the peak is at the " << describe(peak.action);
  auto bytes = [&](BufferKind kind) {
    auto it = peak.classes.find(kind);
    return it == peak.classes.end() ? 0 : it->second;
  };
  std::string list;
  for (BufferKind kind : classes())
    if (bytes(kind))
      list +=
          llvm::formatv("{0}{1} {2}", list.empty() ? "" : ", ", stringifyBufferKind(kind), bytes(kind)).str();
  diag.attachNote() << "live there: " << list;
}

LogicalResult PlanMemory::plan(ArrayRef<ProgramOp> programs, LifeAnalysis &analysis) {
  FailureOr<PositionPlan> plan = planPosition(programs, analysis);
  if (failed(plan))
    return failure();
  giveOption(getOperation(), "device_memory", budget, /*unset=*/0);
  int64_t limit = options::device_memory(getOperation());
  Builder builder(&getContext());
  for (auto [index, memory] : llvm::enumerate(plan->memories)) {
    for (auto [life, packing] : llvm::zip(plan->lives, memory.packings))
      for (auto [buffer, offset] : llvm::zip(life->lives, packing.offsets))
        if (buffer.memory == index)
          BufferOp(buffer.buffer).setOffsetAttr(builder.getI64IntegerAttr(offset));
    if (limit > 0 && memory.memory.getKind() == MemoryKind::Device && plan->deviceBytes() > limit)
      return refuse(programs[memory.largest], plan->deviceBytes(),
                    findPeak(*plan->lives[memory.largest], index)),
             failure();
    for (auto [program, life] : llvm::zip(programs, plan->lives))
      describeUse(getMemories(program)[index], memory.arena, findPeak(*life, index));
  }
  for (ProgramOp program : programs)
    describeTraffic(program, analysis.accesses);
  return success();
}

/// Puts what the plan says of a program's memory on it.
void PlanMemory::describeUse(MemoryOp op, int64_t arena, const Peak &peak) {
  Builder builder(&getContext());
  op.setBytesAttr(builder.getI64IntegerAttr(arena));
  op.setBoundAttr(builder.getI64IntegerAttr(peak.bytes));
  std::map<StringRef, int64_t> memory;
  int64_t sum = 0;
  for (BufferKind kind : classes()) {
    auto it = peak.classes.find(kind);
    if (isRare(kind) && it == peak.classes.end())
      continue;
    int64_t &bytes = memory[stringifyBufferKind(kind)];
    bytes = it == peak.classes.end() ? 0 : it->second;
    sum += bytes;
  }
  memory["padding"] = arena - sum;
  memory["total"] = arena;
  op.setLiveAttr(toDictionary(&getContext(), memory));
}

void PlanMemory::describeTraffic(ProgramOp program, AccessAnalysis &analysis) {
  Sent sent = sumTraffic(collectTraffic(program, analysis, options::node_size(getOperation()).value_or(0)));
  sent.bytes.try_emplace("padding", 0);
  for (Traffic kind : {Traffic::AllGather, Traffic::ReduceScatter, Traffic::SendRecv, Traffic::Tied})
    sent.bytes.try_emplace(stringifyTraffic(kind), 0);
  program.setTrafficAttr(toDictionary(&getContext(), sent.bytes));
  if (!sent.logical.empty())
    program.setLogicalAttr(toDictionary(&getContext(), sent.logical));
  if (!sent.betweenNodes.empty())
    program.setBetweenNodesAttr(toDictionary(&getContext(), sent.betweenNodes));
  if (std::map<StringRef, int64_t> copied = countCopies(program, analysis); !copied.empty())
    program.setCopiedAttr(toDictionary(&getContext(), copied));
}

void PlanMemory::runOnOperation() {
  auto &analysis = getAnalysis<LifeAnalysis>();
  for (auto &[position, programs] : programsByPosition(getOperation()))
    if (failed(plan(programs, analysis)))
      return signalPassFailure();
  markAnalysesPreserved<LifeAnalysis>();
}
