//===- PipelineOrder.cpp - the order of block phases at a position --------===//

#include "dsopt/Transforms/Schedule/PipelineOrder.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace dsopt;

void dsopt::appendForward(const StageShape &shape, int64_t microBatch, SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = shape.firstBlock; block < shape.lastBlock; ++block)
    slots.push_back({block, Phase::F, microBatch});
}

void dsopt::appendBackward(const StageShape &shape, int64_t microBatch,
                           SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = shape.lastBlock; block-- > shape.firstBlock;) {
    slots.push_back({block, Phase::B, microBatch});
    slots.push_back({block, Phase::W, microBatch});
  }
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

namespace {
struct Schedule {
  PipelineOrder order;
  std::vector<ScheduleOption> options;
};
} // namespace

static std::map<std::string, Schedule> &schedules() {
  static std::map<std::string, Schedule> known = {{"gpipe", {gpipe, {}}},
                                                  {"1f1b", {oneForwardOneBackward, {}}}};
  return known;
}

void dsopt::registerPipelineOrder(StringRef name, PipelineOrder order, std::vector<ScheduleOption> options) {
  schedules()[name.str()] = {std::move(order), std::move(options)};
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

PipelineOrder dsopt::getPipelineOrder(StringRef text, std::string *problem) {
  auto fail = [&](const Twine &what) {
    if (problem)
      *problem = what.str();
    return PipelineOrder();
  };
  auto [name, rest] = text.split('{');
  auto schedule = schedules().find(name.str());
  if (schedule == schedules().end())
    return fail("is \"" + name + "\", expected one of " + llvm::join(pipelineOrderNames(), ", "));
  if (text.contains('{') && !rest.consume_back("}"))
    return fail("is \"" + text + "\", expected NAME{option=N,...}");
  const auto &[order, options] = schedule->second;
  std::vector<int64_t> values;
  for (const ScheduleOption &option : options)
    values.push_back(option.byDefault);
  if (std::string wrong = readOptions(rest, options, values); !wrong.empty())
    return fail(name + " " + wrong);
  return [order = order, values](StageShape shape) {
    shape.options = values;
    return order(shape);
  };
}

static std::string describe(const PipelineSlot &slot) {
  return llvm::formatv("{0} of block {1} on micro-batch {2}", stringifyPhase(slot.phase), slot.block,
                       slot.microBatch);
}

/// The slots of a stage that must come before `slot`.
static SmallVector<PipelineSlot> predecessors(const StageShape &shape, const PipelineSlot &slot) {
  auto [block, phase, m] = slot;
  SmallVector<PipelineSlot> before;
  if (m > 0)
    before.push_back({block, phase, m - 1});
  if (phase == Phase::F && block > shape.firstBlock)
    before.push_back({block - 1, Phase::F, m});
  if (phase == Phase::B)
    before.push_back(block + 1 < shape.lastBlock ? PipelineSlot{block + 1, Phase::B, m}
                                                 : PipelineSlot{block, Phase::F, m});
  if (phase == Phase::W)
    before.push_back({block, Phase::B, m});
  return before;
}

std::string dsopt::checkOrder(const StageShape &shape, ArrayRef<PipelineSlot> slots) {
  constexpr int64_t kPhases = 3;
  int64_t blocks = shape.lastBlock - shape.firstBlock;
  auto indexOf = [&](const PipelineSlot &slot) {
    return (slot.microBatch * blocks + slot.block - shape.firstBlock) * kPhases +
           static_cast<int64_t>(slot.phase);
  };
  llvm::BitVector done(shape.microBatches * blocks * kPhases);
  for (auto [place, slot] : llvm::enumerate(slots)) {
    auto wrong = [&, &slot = slot, place = place](const Twine &what) {
      return llvm::formatv("slot {0} is {1}, ", place, describe(slot)).str() + what.str();
    };
    if (slot.block < shape.firstBlock || slot.block >= shape.lastBlock)
      return wrong("expected blocks " + Twine(shape.firstBlock) + " to " + Twine(shape.lastBlock - 1));
    if (slot.phase == Phase::E)
      return wrong("expected phases F, B and W");
    if (slot.microBatch < 0 || slot.microBatch >= shape.microBatches)
      return wrong("expected micro-batches 0 to " + Twine(shape.microBatches - 1));
    if (done[indexOf(slot)])
      return wrong("expected each once");
    for (const PipelineSlot &before : predecessors(shape, slot))
      if (!done[indexOf(before)])
        return wrong("expected it after " + describe(before));
    done.set(indexOf(slot));
  }
  int missing = done.find_first_unset();
  if (missing < 0)
    return "";
  int64_t unit = missing / kPhases;
  return "no slot is " +
         describe({shape.firstBlock + unit % blocks, static_cast<Phase>(missing % kPhases), unit / blocks}) +
         ", expected each once";
}
