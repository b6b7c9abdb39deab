//===- Plan.cpp - what a program will take and send -----------------------===//

#include "dsopt/Pipeline/Plan.h"

#include "CollectivePlan.h"
#include "PlanWords.h"
#include "ShardingPlan.h"

#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Runtime/ABI.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
constexpr StringLiteral kLocalStepNames[] = {"whole", "compressed", "local", "join"};

/// Everything the two forms print.
struct Plan {
  Plan(ModuleOp module, TargetAttr target);

  ModuleOp module;
  SmallVector<ProgramOp> programs; ///< of a step
  int64_t dp, sp, tp, M, V, threads, parameters = 0;
  int64_t tiles = 0, largestTile = 0; ///< of weights that are cut; elements
  int64_t staging = 0;                ///< of -save-async, bytes of each rank
  std::optional<DeviceLimits> device; ///< none for a CPU
  std::string zero, accumulate, schedule;
  double bubble = 0, flops = 0, milliseconds = 0, exposed = 0;

  /// Of an optimizer that freezes: what a rank sends in a step before and behind that, at most, and keeps of
  /// what compression leaves out. No step: there is none.
  struct Freeze {
    int64_t step = 0, before = 0, behind = 0, errors = 0;
    /// How many times as long a step before the freeze takes where ranks send at so many bytes a second.
    double speedUp(double milliseconds, double rate) const {
      return (milliseconds + before / rate * 1e3) / (milliseconds + behind / rate * 1e3);
    }
  } freeze;

  /// Of an optimizer whose ranks move apart: what one sends in a step of each kind, at most, and in the mean
  /// at the longest interval between exchanges. No interval: it is not such.
  struct LocalSteps {
    int64_t interval = 0, sent[4] = {};
    double mean() const { return double(sent[3] + (interval - 1) * sent[2]) / interval; }
  } local;
  int64_t ranksOfStage() const { return dp * sp * tp; }
  /// -input=NAME=VALUE, as given; null where none was.
  ArrayAttr bound() const { return dyn_cast_or_null<ArrayAttr>(getOption(module, "input")); }
};
} // namespace

std::optional<double> dsopt::parseLink(StringRef text) {
  double factor = 0, rate = 0;
  if (!text.consume_back("/s"))
    return std::nullopt;
  for (auto [unit, bytes] : {std::pair("Gb", 1e9 / 8), {"Mb", 1e6 / 8}, {"GB", 1e9}, {"MB", 1e6}})
    if (!factor && text.consume_back(unit))
      factor = bytes;
  if (!factor || text.getAsDouble(rate) || !(rate > 0))
    return std::nullopt;
  return rate * factor;
}

/// Bytes that a rank of the program sends in a step.
static int64_t sentBytes(ProgramOp program) {
  int64_t sum = 0;
  if (DictionaryAttr traffic = program.getTrafficAttr())
    for (NamedAttribute entry : traffic)
      sum += cast<IntegerAttr>(entry.getValue()).getInt();
  return sum;
}

/// A program's memory at that place, null if it has none.
static MemoryOp memoryAt(ProgramOp program, size_t index) {
  SmallVector<MemoryOp> memories = getMemories(program);
  return index < memories.size() ? memories[index] : MemoryOp();
}

/// What a dictionary says, 0 where there is none of either.
static int64_t entryOf(DictionaryAttr counts, StringRef name) {
  auto value = counts ? counts.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : 0;
}

/// What of a memory is live at the peak, null if there is no such memory.
static DictionaryAttr liveOf(MemoryOp memory) { return memory ? memory.getLiveAttr() : DictionaryAttr(); }

Plan::Plan(ModuleOp module, TargetAttr target)
    : module(module), programs(getPrograms(module, ProgramKind::DelayedStep)),
      dp(dist::getGrid(module).dataParallel()), sp(dist::getGrid(module).size(Axis::sp)),
      tp(dist::getGrid(module).size(Axis::tp)),
      M(options::micro_batches(module).value_or(getMicroBatches(getStepPrograms(module)))),
      V(options::reduction_shards(module).value_or(dp)), threads(target.getThreads()) {
  // Where updates lag, nearly all steps are such.
  if (programs.empty())
    programs = getPrograms(module, ProgramKind::FrozenStep);
  if (programs.empty())
    programs = getPrograms(module, ProgramKind::JoinStep);
  if (programs.empty())
    programs = getStepPrograms(module);
  int64_t stage = options::zero(module);
  zero = std::to_string(dp * sp == 1 ? 0 : stage);
  accumulate = options::accumulate(module).value_or(stage < 2 ? "local" : "sharded");
  schedule = options::schedule(module);
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (int64_t elements = graph::numElements(parameter.getType()); !parameter.getPartOf()) {
      parameters += elements;
    } else if (!parameter.getPartRuns()) {
      ++tiles;
      largestTile = std::max(largestTile, elements);
    }
  if (auto given = dyn_cast_or_null<DictionaryAttr>(getOption(module, "run_defaults"));
      given && given.contains("save-async"))
    staging = DSOPT_SAVE_STAGING;

  if ((freeze.step = options::freeze_step(module).value_or(0)))
    for (auto [before, behind] : llvm::zip(getStepPrograms(module), programs)) {
      int64_t errors = 0;
      for (auto buffer : ProgramOp(behind).getBody().front().getOps<BufferOp>())
        if (llvm::is_contained({kWorkerError, kServerError}, buffer.getState().value_or("")))
          errors += bytesOf(buffer.getType());
      freeze.before = std::max(freeze.before, sentBytes(before));
      freeze.behind = std::max(freeze.behind, sentBytes(behind));
      freeze.errors = std::max(freeze.errors, errors);
    }

  constexpr ProgramKind kinds[] = {ProgramKind::Step, ProgramKind::CompressedStep, ProgramKind::LocalStep,
                                   ProgramKind::JoinStep};
  if (movesApart(module) && (local.interval = options::local_step_clipper(module)))
    for (auto [kind, sent] : llvm::zip_equal(kinds, local.sent))
      for (ProgramOp program : getPrograms(module, kind))
        sent = std::max(sent, sentBytes(program));

  device = deviceOf(target);
  StepCost cost = estimateStep(module);
  flops = cost.flops * ranksOfStage();
  bubble = cost.bubble;
  milliseconds = cost.length * 1e3;
  exposed = (cost.moving - cost.length) * 1e3;
}

/// Those that plan-memory names: classes that few programs have are left out where there are none.
static void memoryClasses(llvm::json::OStream &json, MemoryOp memory) {
  DictionaryAttr live = liveOf(memory);
  if (!live)
    return;
  for (const PlanWord &word : memoryWords())
    if (auto bytes = live.getAs<IntegerAttr>(word.name))
      json.attribute(word.name, bytes.getInt());
  json.attribute("total", entryOf(live, "total"));
}

static void printJson(const Plan &plan, llvm::raw_ostream &out) {
  llvm::json::OStream json(out);
  json.object([&] {
    json.attributeObject("layout", [&] {
      json.attribute("pp", (int64_t)plan.programs.size());
      json.attribute("dp", plan.dp);
      json.attribute("sp", plan.sp);
      json.attribute("tp", plan.tp);
      json.attribute("ep", 1);
      json.attribute("zero", std::stoi(plan.zero));
      json.attribute("schedule", plan.schedule);
      json.attribute("accumulate", plan.accumulate);
      json.attribute("threads", plan.threads);
    });
    json.attributeObject("batch", [&] {
      json.attribute("K", plan.dp * plan.M);
      json.attribute("V", plan.V);
      json.attribute("M", plan.M);
      json.attribute("micro_batch_size", options::micro_batch_size(plan.module).value_or(0));
    });
    if (ArrayAttr bound = plan.bound())
      json.attributeObject("bound_inputs", [&] {
        for (StringRef text : bound.getAsValueRange<StringAttr>())
          json.attribute(text.rsplit('=').first, text.rsplit('=').second);
      });
    json.attribute("parameters", plan.parameters);
    json.attribute("tiles", plan.tiles);
    json.attribute("largest_tile", plan.largestTile);
    json.attribute("save_staging_bytes", plan.staging);
    json.attributeArray("ranks", [&] {
      for (auto [stage, op] : llvm::enumerate(plan.programs)) {
        ProgramOp program = op;
        for (int64_t r = 0; r < plan.ranksOfStage(); ++r)
          json.object([&, stage = stage] {
            json.attribute("rank", (int64_t)stage * plan.ranksOfStage() + r);
            json.attribute("stage", (int64_t)stage);
            json.attributeArray("blocks", [&] {
              for (auto [first, last] : program.getChunks())
                json.array([&, first = first, last = last] {
                  json.value(first);
                  json.value(last);
                });
            });
            json.attributeObject("memory", [&] { memoryClasses(json, memoryAt(program, 0)); });
            MemoryOp memory = memoryAt(program, 0);
            json.attribute("live_bytes", memory ? (int64_t)memory.getBound().value_or(0) : 0);
            json.attributeArray("memories", [&] {
              for (MemoryOp memory : getMemories(program))
                json.object([&] {
                  json.attribute("name", memory.getSymName());
                  json.attribute("kind", stringifyMemoryKind(memory.getKind()));
                  json.attribute("bytes", (int64_t)memory.getBytes().value_or(0));
                  json.attribute("live_bytes", (int64_t)memory.getBound().value_or(0));
                  memoryClasses(json, memory);
                });
            });
            json.attributeObject("copied", [&] {
              for (const PlanWord &word : copyTargets())
                json.attribute(word.name, entryOf(program.getCopiedAttr(), word.name));
            });
            json.attributeObject("traffic", [&] {
              for (const PlanWord &word : trafficWords())
                json.attribute(word.name, entryOf(program.getTrafficAttr(), word.name));
              // Sums for all ranks are a reduce-scatter and an all-gather.
              json.attribute("all_reduce", 0);
            });
            for (auto [key, counts] : {std::pair("logical", program.getLogicalAttr()),
                                       {"between_nodes", program.getBetweenNodesAttr()}})
              if (counts)
                json.attributeObject(key, [&, counts = counts] {
                  for (const PlanWord &word : trafficWords())
                    if (int64_t bytes = entryOf(counts, word.name))
                      json.attribute(word.name, bytes);
                });
          });
      }
    });
    json.attributeArray("collectives", [&] { writeCollectives(plan.module, json); });
    if (std::optional<ShardingPlan> sharding = collectSharding(plan.module)) {
      json.attributeBegin("sharding");
      writeSharding(*sharding, json);
      json.attributeEnd();
    }
    json.attribute("bubble", plan.bubble);
    // More than a double holds exactly may be more than 64 bits do.
    json.attribute("flops_per_step", plan.flops < 9e15 ? llvm::json::Value((int64_t)plan.flops)
                                                       : llvm::json::Value(plan.flops));
    json.attribute("predicted_step_ms", plan.milliseconds);
    json.attribute("predicted_exposed_ms", plan.exposed);
    if (plan.local.interval)
      json.attributeObject("local_steps", [&] {
        json.attribute("freeze_step", plan.freeze.step);
        json.attribute("longest_interval", plan.local.interval);
        json.attribute("errors", plan.freeze.errors);
        json.attributeObject("sent", [&] {
          for (auto [name, bytes] : llvm::zip_equal(kLocalStepNames, plan.local.sent))
            json.attribute(name, bytes);
          json.attribute("mean", plan.local.mean());
        });
      });
    else if (plan.freeze.step)
      json.attributeObject("freeze", [&] {
        json.attribute("step", plan.freeze.step);
        json.attribute("sent_before", plan.freeze.before);
        json.attribute("sent_behind", plan.freeze.behind);
        json.attribute("errors", plan.freeze.errors);
        if (std::optional<double> link = parseLink(options::link(plan.module).value_or("")))
          json.attribute("speed_up", plan.freeze.speedUp(plan.milliseconds, *link));
      });
    if (plan.device)
      json.attribute("assumed_device", plan.device->name);
    else
      json.attribute("assumed_gflops_per_thread", kAssumedFlopsPerThread / 1e9);
  });
  out << "\n";
}

/// 123, 1.5 k, 20.1 M ... (powers of 1024), for a table.
static std::string humanBytes(int64_t bytes) {
  const char *units[] = {"", " k", " M", " G", " T"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return llvm::formatv(unit ? "{0:F1}{1}" : "{0:F0}{1}", value, units[unit]).str();
}

namespace {
/// Columns of a stage in a table, and of what another line is about.
constexpr size_t kCell = 10, kSubject = 12;
/// Writes the plan for a person; what is 0 everywhere is left out.
class PlanTable {
public:
  PlanTable(const Plan &plan, llvm::raw_ostream &out, size_t columns)
      : plan(plan), out(out), columns(std::max(columns, kLeastColumns)) {}

  void print() {
    size_t stages = plan.programs.size(), most = (columns - kPlanLabel) / kCell;
    line("layout", llvm::formatv("{0} x {1}{2}{3}, zero {4}, {5}", counted(stages, "stage"),
                                 counted(plan.dp, "data-parallel rank"),
                                 plan.sp > 1 ? " x " + counted(plan.sp, "sequence-parallel rank") : "",
                                 plan.tp > 1 ? " x " + counted(plan.tp, "tensor-parallel rank") : "",
                                 plan.zero, plan.schedule));
    line("batch",
         llvm::formatv("{0} a step = {1} dp x {2}, {3}, {4}", counted(plan.dp * plan.M, "micro-batch", "es"),
                       plan.dp, plan.M, counted(plan.V, "reduction shard"), plan.accumulate));
    if (ArrayAttr bound = plan.bound())
      line("inputs", llvm::join(bound.getAsValueRange<StringAttr>(), ", ") + " (bound)");
    line("parameters", std::to_string(plan.parameters));
    if (plan.tiles > 0)
      line("tiles", llvm::formatv("{0} of weights, of {1} elements at most", plan.tiles, plan.largestTile));
    if (int64_t first = options::delayed_update(plan.module).value_or(0))
      line("update", llvm::formatv("a step behind from step {0} on: what is below is of such a step", first));
    printFreeze();
    out << "\n";
    for (size_t first = 0; first < stages; first += most)
      printStages(ArrayRef(plan.programs).slice(first, std::min(most, stages - first)), first);
    printSums();
    printWords();
  }

private:
  /// What a line is about, and text that goes on below itself where it does not fit.
  void line(StringRef subject, const std::string &text) {
    out << llvm::left_justify(subject, kSubject);
    size_t at = kSubject;
    for (StringRef rest = text; !rest.empty();) {
      auto [word, behind] = rest.split(' ');
      if (at > kSubject && at + 1 + word.size() > columns) {
        out << "\n";
        out.indent(at = kSubject);
      } else if (at > kSubject) {
        out << ' ';
        ++at;
      }
      out << word;
      at += word.size();
      rest = behind;
    }
    out << "\n";
  }
  void printFreeze() {
    const Plan::Freeze &freeze = plan.freeze;
    if (plan.local.interval)
      return printLocalSteps();
    if (!freeze.step)
      return;
    line("freeze",
         llvm::formatv("after {0} applied steps: what is below is of a step behind it", freeze.step));
    line("compressed",
         llvm::formatv("a rank sends {0} bytes a step before the freeze, {1} behind it; {2} are kept of "
                       "what that leaves out",
                       humanBytes(freeze.before), humanBytes(freeze.behind), humanBytes(freeze.errors)));
    StringRef text = options::link(plan.module).value_or("");
    if (std::optional<double> link = parseLink(text))
      line("link",
           llvm::formatv("at {0} a step takes {1:F1} ms before the freeze, {2:F1} ms behind it: {3:F2} "
                         "times as fast",
                         text, plan.milliseconds + freeze.before / *link * 1e3,
                         plan.milliseconds + freeze.behind / *link * 1e3,
                         freeze.speedUp(plan.milliseconds, *link)));
  }
  void printLocalSteps() {
    const Plan::LocalSteps &local = plan.local;
    line("freeze", llvm::formatv("after {0} applied steps: what is below is of a step behind it that joins",
                                 plan.freeze.step));
    line("compressed",
         llvm::formatv("a rank sends {0} bytes in a whole step, {1} in a compressed one, {2} in a "
                       "local one, {3} in one that joins; {4} are kept of what that leaves out",
                       humanBytes(local.sent[0]), humanBytes(local.sent[1]), humanBytes(local.sent[2]),
                       humanBytes(local.sent[3]), humanBytes(plan.freeze.errors)));
    StringRef text = options::link(plan.module).value_or("");
    std::optional<double> link = parseLink(text);
    if (!link)
      return;
    auto takes = [&](double bytes) { return plan.milliseconds + bytes / *link * 1e3; };
    line("link", llvm::formatv("at {0} a step takes {1:F1} ms whole, {2:F1} ms compressed, {3:F1} ms in the "
                               "mean of {4} steps that one joins",
                               text, takes(local.sent[0]), takes(local.sent[1]), takes(local.mean()),
                               local.interval));
  }
  static std::string counted(int64_t count, StringRef what, StringRef plural = "s") {
    return (Twine(count) + " " + what + (count == 1 ? "" : plural)).str();
  }
  /// Counts of a program, or of one of its memories.
  using Counts = llvm::function_ref<DictionaryAttr(ProgramOp)>;
  static DictionaryAttr traffic(ProgramOp program) { return program.getTrafficAttr(); }
  static DictionaryAttr logical(ProgramOp program) { return program.getLogicalAttr(); }
  static DictionaryAttr betweenNodes(ProgramOp program) { return program.getBetweenNodesAttr(); }
  static DictionaryAttr copied(ProgramOp program) { return program.getCopiedAttr(); }
  bool appears(Counts counts, StringRef name) const {
    return llvm::any_of(plan.programs, [&](ProgramOp program) { return entryOf(counts(program), name); });
  }
  bool sends() const {
    return llvm::any_of(trafficWords(), [&](const PlanWord &word) { return appears(traffic, word.name); });
  }
  void row(StringRef label, size_t cells, llvm::function_ref<std::string(size_t)> cell) {
    out << llvm::left_justify(label, kPlanLabel);
    for (size_t i = 0; i < cells; ++i)
      out << llvm::right_justify(cell(i), kCell);
    out << "\n";
  }
  static std::string range(int64_t first, int64_t count) {
    return std::to_string(first) + (count > 1 ? ".." + std::to_string(first + count - 1) : "");
  }

  void printStages(ArrayRef<ProgramOp> programs, size_t first) {
    size_t count = programs.size();
    row("stage", count, [&](size_t i) { return std::to_string(first + i); });
    row("ranks", count,
        [&](size_t i) { return range((first + i) * plan.ranksOfStage(), plan.ranksOfStage()); });
    size_t most = 0;
    for (ProgramOp program : programs)
      most = std::max(most, program.getChunks().size());
    for (size_t chunk = 0; chunk < most; ++chunk)
      row(chunk ? "" : "blocks", count, [&](size_t i) {
        auto chunks = ProgramOp(programs[i]).getChunks();
        return chunk < chunks.size() ? range(chunks[chunk].first, chunks[chunk].second - chunks[chunk].first)
                                     : "";
      });
    auto rows = [&](const Twine &title, Counts counts, ArrayRef<PlanWord> classes, bool hasTotal = false) {
      out << title << "\n";
      auto rowOf = [&](StringRef name) {
        row(("  " + name).str(), count,
            [&](size_t i) { return humanBytes(entryOf(counts(programs[i]), name)); });
      };
      for (const PlanWord &word : classes)
        if (appears(counts, word.name))
          rowOf(word.name);
      if (hasTotal)
        rowOf("total");
    };
    for (auto [index, memory] : llvm::enumerate(getMemories(programs.front())))
      rows(
          index
              ? ("bytes of a rank at its peak in " + stringifyMemoryKind(memory.getKind()) + " memory").str()
              : "bytes of a rank at its peak",
          [index = index](ProgramOp program) { return liveOf(memoryAt(program, index)); }, memoryWords(),
          /*hasTotal=*/true);
    if (sends())
      rows("bytes that a rank sends in a step", traffic, trafficWords());
    ProgramOp front = programs.front();
    if (front.getLogicalAttr())
      rows("bytes that the compressed ones of these stand for", logical, trafficWords());
    if (front.getBetweenNodesAttr())
      rows("bytes of these that leave a node of " +
               counted(options::node_size(plan.module).value_or(1), "rank") + ", for each rank",
           betweenNodes, trafficWords());
    if (llvm::any_of(copyTargets(), [&](const PlanWord &word) { return appears(copied, word.name); }))
      rows("bytes that a rank copies in a step, to memory of", copied, copyTargets());
    out << "\n";
  }

  void printSums() {
    // The memory that is furthest above what no packing can beat.
    double most = 0;
    int64_t live = 0;
    for (ProgramOp program : plan.programs)
      for (MemoryOp memory : getMemories(program))
        if (int64_t bound = memory.getBound().value_or(0); bound > 0) {
          double above = double(entryOf(memory.getLiveAttr(), "total")) / bound - 1;
          if (above >= most)
            most = above, live = bound;
        }
    if (plan.staging)
      line("staging",
           llvm::formatv("{0} of the host's memory for each rank's part of a checkpoint (-save-async)",
                         humanBytes(plan.staging)));
    line("packing", llvm::formatv("at most {0:F1} % above the largest sum of live bytes ({1})", most * 100,
                                  humanBytes(live)));
    line("bubble", llvm::formatv("{0:F3} of the stages' time is spent waiting for each other", plan.bubble));
    line("flops", llvm::formatv("{0:e2} a step", plan.flops));
    line("predicted", llvm::formatv("{0:F1} ms a step {1}", plan.milliseconds, assumption()));
    if (plan.exposed > 0 && plan.device)
      line("exposed", llvm::formatv("{0:F1} ms more for what is sent at {1:F0} GB/s and copied to the host "
                                    "at {2:F0}",
                                    plan.exposed, plan.device->links / 1e9, plan.device->host / 1e9));
    else if (plan.exposed > 0)
      line("exposed",
           llvm::formatv("{0:F1} ms more for what is sent and copied at {1:F0} GB/s beside nothing",
                         plan.exposed, kAssumedBytesPerSecond / 1e9));
    out << "\n";
  }

  std::string assumption() const {
    if (!plan.device)
      return llvm::formatv("at {0:F0} GFLOP/s a thread", kAssumedFlopsPerThread / 1e9);
    return llvm::formatv("on {0}: each kernel at {1:F0} % of its limit and {2:F0} us to start",
                         plan.device->name, kReachedOfLimit * 100, kLaunchSeconds * 1e6);
  }

  void printWords() {
    auto words = [&](ArrayRef<PlanWord> meanings, llvm::function_ref<bool(StringRef)> appears) {
      for (const PlanWord &word : meanings)
        if (appears(word.name))
          out << llvm::left_justify(("  " + word.name).str(), kPlanLabel) << word.meaning << "\n";
    };
    out << llvm::left_justify("blocks", kPlanLabel)
        << "the model's parts in order, cut where the fewest values live\n"
        << llvm::left_justify("0", kPlanLabel)
        << "none of it in that stage; what is 0 in all of them is left out\n"
        << "in memory\n";
    words(memoryWords(), [&](StringRef name) {
      return llvm::any_of(plan.programs, [&](ProgramOp program) {
        return llvm::any_of(getMemories(program),
                            [&](MemoryOp memory) { return entryOf(liveOf(memory), name); });
      });
    });
    if (sends())
      out << "sent\n";
    words(trafficWords(), [&](StringRef name) { return appears(traffic, name); });
  }

  const Plan &plan;
  llvm::raw_ostream &out;
  size_t columns;
};
} // namespace

LogicalResult dsopt::printPlan(ModuleOp module, llvm::raw_ostream &out, bool json, size_t columns) {
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  Plan plan(module, *target);
  json ? printJson(plan, out) : PlanTable(plan, out, columns).print();
  return success();
}
