//===- PipelineOrder.cpp - the order of block phases at a position --------===//

#include "dsopt/Analysis/Exec/PipelineOrder.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace dsopt;

void dsopt::appendForward(const Chunk &chunk, int64_t microBatch, SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = chunk.first; block < chunk.last; ++block)
    slots.push_back({block, Phase::F, microBatch});
}

void dsopt::appendBackward(const Chunk &chunk, int64_t microBatch, SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = chunk.last; block-- > chunk.first;) {
    slots.push_back({block, Phase::B, microBatch});
    slots.push_back({block, Phase::W, microBatch});
  }
}

void dsopt::appendForward(const StageShape &shape, int64_t microBatch, SmallVectorImpl<PipelineSlot> &slots) {
  for (const Chunk &chunk : shape.chunks)
    appendForward(chunk, microBatch, slots);
}

void dsopt::appendBackward(const StageShape &shape, int64_t microBatch,
                           SmallVectorImpl<PipelineSlot> &slots) {
  for (const Chunk &chunk : llvm::reverse(shape.chunks))
    appendBackward(chunk, microBatch, slots);
}

/// All forwards, then all backwards (Huang et al. 2019), both ascending.
static SmallVector<PipelineSlot> gpipe(const StageShape &shape) {
  SmallVector<PipelineSlot> slots;
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendForward(shape, m, slots);
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendBackward(shape, m, slots);
  return slots;
}

/// One forward, one backward (Narayanan et al. 2019): a stage starts as many
/// forwards as there are stages behind it, then alternates, then drains.
static SmallVector<PipelineSlot> oneForwardOneBackward(const StageShape &shape) {
  SmallVector<PipelineSlot> slots;
  int64_t warmUp = std::min(shape.stages - shape.stage - 1, shape.microBatches);
  for (int64_t m = 0; m < warmUp; ++m)
    appendForward(shape, m, slots);
  for (int64_t m = warmUp; m < shape.microBatches; ++m) {
    appendForward(shape, m, slots);
    appendBackward(shape, m - warmUp, slots);
  }
  for (int64_t m = shape.microBatches - warmUp; m < shape.microBatches; ++m)
    appendBackward(shape, m, slots);
  return slots;
}

/// Interleaved 1F1B (Narayanan et al. 2021, section 2.2): of C chunks a stage has every S-th one, and bubbles
/// are C times shorter. As many micro-batches as there are stages go through a chunk before the next one.
static SmallVector<PipelineSlot> interleaved(const StageShape &shape) {
  SmallVector<PipelineSlot> slots;
  if (shape.chunks.size() == 1)
    return oneForwardOneBackward(shape);
  int64_t chunks = shape.chunks.size(), round = shape.stages * chunks, count = shape.microBatches * chunks;
  auto append = [&](int64_t turn, bool forward) {
    int64_t chunk = turn % round / shape.stages;
    int64_t microBatch = turn / round * shape.stages + turn % shape.stages;
    if (forward)
      appendForward(shape.chunks[chunk], microBatch, slots);
    else
      appendBackward(shape.chunks[chunks - 1 - chunk], microBatch, slots);
  };
  int64_t warmUp = std::min((shape.stages - shape.stage - 1) * 2 + (chunks - 1) * shape.stages, count);
  for (int64_t turn = 0; turn < count + warmUp; ++turn) {
    if (turn < count)
      append(turn, /*forward=*/true);
    if (turn >= warmUp)
      append(turn - warmUp, /*forward=*/false);
  }
  return slots;
}

static SmallVector<int64_t> interleavedChunks(int64_t stages, ArrayRef<int64_t> options) {
  SmallVector<int64_t> map;
  for (int64_t chunk = 0; chunk < stages * options[0]; ++chunk)
    map.push_back(chunk % stages);
  return map;
}

static std::string refuseInterleaved(int64_t stages, int64_t microBatches, ArrayRef<int64_t> options) {
  constexpr int64_t kMost = 1 << 16;
  if (options[0] < 1 || options[0] > kMost)
    return llvm::formatv("got chunks={0}, expected 1 to {1}", options[0], kMost);
  if (options[0] > 1 && microBatches % stages)
    return llvm::formatv("got {0} micro-batches a rank for {1} stages, expected a multiple of {1}",
                         microBatches, stages);
  return "";
}

static std::map<std::string, PipelineSchedule> &schedules() {
  static std::map<std::string, PipelineSchedule> known = {
      {"gpipe", {gpipe}},
      {"1f1b", {oneForwardOneBackward}},
      {"interleaved", {interleaved, {{"chunks", 2}}, interleavedChunks, refuseInterleaved}}};
  return known;
}

void dsopt::registerPipelineSchedule(StringRef name, PipelineSchedule schedule) {
  schedules()[name.str()] = std::move(schedule);
}

void dsopt::registerPipelineOrder(StringRef name, PipelineOrder order, std::vector<ScheduleOption> options) {
  registerPipelineSchedule(name, {std::move(order), std::move(options)});
}

std::vector<std::string> dsopt::pipelineOrderNames() {
  auto names = llvm::make_first_range(schedules());
  return {names.begin(), names.end()};
}

/// Reads `option=N,...` into the values of a schedule's options; says what is wrong with it.
static std::string readOptions(StringRef text, ArrayRef<ScheduleOption> options,
                               MutableArrayRef<int64_t> values) {
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    const auto *option = llvm::find_if(
        options, [&, name = name](const ScheduleOption &option) { return option.name == name; });
    if (option == options.end())
      return llvm::formatv(
          "has no option '{0}', expected {1}", name,
          options.empty()
              ? "none"
              : llvm::join(llvm::map_range(options, [](const ScheduleOption &option) { return option.name; }),
                           ", "));
    if (value.getAsInteger(10, values[option - options.begin()]))
      return llvm::formatv("got {0}='{1}', expected a whole number", name, value);
  }
  return "";
}

PipelineSchedule dsopt::getPipelineSchedule(StringRef text, std::string *problem) {
  auto fail = [&](const Twine &what) {
    if (problem)
      *problem = what.str();
    return PipelineSchedule();
  };
  auto [name, rest] = text.split('{');
  auto known = schedules().find(name.str());
  if (known == schedules().end())
    return fail("is \"" + name + "\", expected one of " + llvm::join(pipelineOrderNames(), ", "));
  if (text.contains('{') && !rest.consume_back("}"))
    return fail("is \"" + text + "\", expected NAME{option=N,...}");
  PipelineSchedule schedule = known->second;
  std::vector<int64_t> values;
  for (const ScheduleOption &option : schedule.options)
    values.push_back(option.byDefault);
  if (std::string wrong = readOptions(rest, schedule.options, values); !wrong.empty())
    return fail(name + " " + wrong);
  schedule.order = [order = schedule.order, values](StageShape shape) {
    shape.options = values;
    return order(shape);
  };
  schedule.chunks = [chunks = schedule.chunks, values](int64_t stages, ArrayRef<int64_t>) {
    return chunks ? chunks(stages, values) : llvm::to_vector(llvm::seq<int64_t>(0, stages));
  };
  schedule.refuse = [refuse = schedule.refuse, values](int64_t stages, int64_t microBatches,
                                                       ArrayRef<int64_t>) {
    return refuse ? refuse(stages, microBatches, values) : std::string();
  };
  return schedule;
}

PipelineOrder dsopt::getPipelineOrder(StringRef text, std::string *problem) {
  return getPipelineSchedule(text, problem).order;
}

static std::string describe(const PipelineSlot &slot) {
  return llvm::formatv("{0} of block {1} on micro-batch {2}", stringifyPhase(slot.phase), slot.block,
                       slot.microBatch);
}

/// The blocks of a stage, ascending.
static SmallVector<int64_t> blocksOf(const StageShape &shape) {
  SmallVector<int64_t> blocks;
  for (const Chunk &chunk : shape.chunks)
    for (int64_t block = chunk.first; block < chunk.last; ++block)
      blocks.push_back(block);
  return blocks;
}

/// The slots of a stage that must come before `slot`, which is of its block `index`.
static SmallVector<PipelineSlot> predecessors(ArrayRef<int64_t> blocks, size_t index,
                                              const PipelineSlot &slot) {
  auto [block, phase, m] = slot;
  SmallVector<PipelineSlot> before;
  if (m > 0)
    before.push_back({block, phase, m - 1});
  if (phase == Phase::F && index > 0)
    before.push_back({blocks[index - 1], Phase::F, m});
  if (phase == Phase::B)
    before.push_back(index + 1 < blocks.size() ? PipelineSlot{blocks[index + 1], Phase::B, m}
                                               : PipelineSlot{block, Phase::F, m});
  if (phase == Phase::W)
    before.push_back({block, Phase::B, m});
  return before;
}

std::string dsopt::checkOrder(const StageShape &shape, ArrayRef<PipelineSlot> slots) {
  constexpr int64_t kPhases = 3;
  SmallVector<int64_t> blocks = blocksOf(shape);
  auto placeOf = [&](int64_t block) { return llvm::lower_bound(blocks, block) - blocks.begin(); };
  auto indexOf = [&](const PipelineSlot &slot) {
    return (slot.microBatch * blocks.size() + placeOf(slot.block)) * kPhases +
           static_cast<int64_t>(slot.phase);
  };
  llvm::BitVector done(shape.microBatches * blocks.size() * kPhases);
  for (auto [place, slot] : llvm::enumerate(slots)) {
    auto wrong = [&, &slot = slot, place = place](const Twine &what) {
      return llvm::formatv("slot {0} is {1}, ", place, describe(slot)).str() + what.str();
    };
    if (!llvm::binary_search(blocks, slot.block)) {
      std::string ranges;
      for (const Chunk &chunk : shape.chunks)
        ranges += llvm::formatv("{0}{1} to {2}", ranges.empty() ? "" : ", ", chunk.first, chunk.last - 1);
      return wrong("expected blocks " + ranges);
    }
    if (slot.phase == Phase::E)
      return wrong("expected phases F, B and W");
    if (slot.microBatch < 0 || slot.microBatch >= shape.microBatches)
      return wrong("expected micro-batches 0 to " + Twine(shape.microBatches - 1));
    if (done[indexOf(slot)])
      return wrong("expected each once");
    for (const PipelineSlot &before : predecessors(blocks, placeOf(slot.block), slot))
      if (!done[indexOf(before)])
        return wrong("expected it after " + describe(before));
    done.set(indexOf(slot));
  }
  int missing = done.find_first_unset();
  if (missing < 0)
    return "";
  int64_t unit = missing / kPhases, count = blocks.size();
  return "no slot is " +
         describe({blocks[unit % count], static_cast<Phase>(missing % kPhases), unit / count}) +
         ", expected each once";
}

std::vector<std::vector<int64_t>> dsopt::startTimes(ArrayRef<StageShape> shapes,
                                                    ArrayRef<SmallVector<PipelineSlot>> orders,
                                                    std::string &problem) {
  int64_t blocks = 0, microBatches = 0;
  for (const StageShape &shape : shapes)
    for (const Chunk &chunk : shape.chunks) {
      blocks = std::max(blocks, chunk.last);
      microBatches = std::max(microBatches, shape.microBatches);
    }
  // When F and B of each block are done on each micro-batch, -1: not yet.
  std::vector<int64_t> done[2];
  for (std::vector<int64_t> &list : done)
    list.assign(blocks * microBatches, -1);
  std::vector<std::vector<int64_t>> starts(shapes.size());
  bool advanced = true;
  auto advance = [&](size_t stage) {
    std::vector<int64_t> &own = starts[stage];
    while (own.size() < orders[stage].size()) {
      auto [block, phase, m] = orders[stage][own.size()];
      int64_t start = own.empty() ? 0 : own.back() + 1;
      if (phase != Phase::W) {
        int64_t from = phase == Phase::F ? block - 1 : block + 1;
        if (from >= 0 && from < blocks) {
          int64_t before = done[phase != Phase::F][m * blocks + from];
          if (before < 0)
            return;
          start = std::max(start, before);
        }
        done[phase != Phase::F][m * blocks + block] = start + 1;
      }
      own.push_back(start);
      advanced = true;
    }
  };
  while (advanced) {
    advanced = false;
    for (size_t stage = 0; stage < shapes.size(); ++stage)
      advance(stage);
  }
  for (auto [stage, own] : llvm::enumerate(starts))
    if (own.size() < orders[stage].size())
      problem += llvm::formatv("{0}stage {1} at slot {2}, {3}",
                               problem.empty() ? "stages wait for each other: " : "; ", stage, own.size(),
                               describe(orders[stage][own.size()]));
  return starts;
}
