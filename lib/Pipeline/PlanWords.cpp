//===- PlanWords.cpp - the classes of bytes that a plan tells apart -------===//

#include "PlanWords.h"

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Pipeline/Plan.h"

using namespace llvm;
using namespace dsopt;
using namespace dsopt::exec;

static constexpr StringLiteral meaningOf(BufferKind kind) {
  switch (kind) {
  case BufferKind::Parameters:
    return "weights that stay here: whole, or this rank's slice (-zero=3)";
  case BufferKind::Gradients:
    return "sums over a step's micro-batches, where they live at the peak";
  case BufferKind::Optimizer:
    return "moments, and fp32 masters of weights in 16 bits";
  case BufferKind::Activations:
    return "what forward keeps for backward, and what stages exchange";
  case BufferKind::Buffers:
    return "short-lived: gathered weights, a block's gradients, workspace";
  case BufferKind::Reduction:
    return "sums of reduction shards that wait for their neighbours";
  case BufferKind::Tied:
    return "copies and gradients of weights that several stages use";
  case BufferKind::Constants:
    return "the model's, copied to a device before the first step";
  case BufferKind::Secondary:
    return "of gathered weights what this rank keeps for its node";
  case BufferKind::Cache:
    return "what is kept of earlier positions, for each sequence";
  case BufferKind::Packed:
    return "weights as products of few rows read them";
  }
  llvm_unreachable("not a kind of buffer");
}

static constexpr StringLiteral meaningOf(Traffic traffic) {
  switch (traffic) {
  case Traffic::AllGather:
    return "weights, from their slices";
  case Traffic::ReduceScatter:
    return "gradients, to their slices' owners";
  case Traffic::SendRecv:
    return "activations and their gradients, between stages";
  case Traffic::Tied:
    return "weights and gradients that several stages share";
  case Traffic::AllToAll:
    return "parts of gradients and momenta, to those that add them";
  case Traffic::TensorParallel:
    return "activations and their gradients, between tensor shards";
  case Traffic::SequenceParallel:
    return "activations and their gradients, between sequence shards";
  }
  llvm_unreachable("not a class of traffic");
}

static constexpr StringLiteral meaningOf(MemoryKind) { return ""; }
static constexpr StringLiteral kGaps = "alignment, and gaps that no other buffer fits",
                               kFill = "of all that: zeros that fill up slices";

/// The most columns that the meaning of a class takes.
template <typename Enum> static constexpr size_t widest(unsigned last) {
  size_t most = 0;
  for (unsigned value = 0; value <= last; ++value)
    most = std::max(most, meaningOf(Enum(value)).size());
  return most;
}
static_assert(kPlanLabel +
                      std::max({widest<BufferKind>(getMaxEnumValForBufferKind()),
                                widest<Traffic>(getMaxEnumValForTraffic()), kGaps.size(), kFill.size()}) <=
                  kLeastColumns,
              "wider than a terminal");

template <typename Enum> static SmallVector<PlanWord> wordsOf(unsigned last) {
  SmallVector<PlanWord> words;
  for (unsigned value = 0; value <= last; ++value)
    words.push_back({stringifyEnum(Enum(value)), meaningOf(Enum(value))});
  return words;
}

ArrayRef<PlanWord> dsopt::memoryWords() {
  static const SmallVector<PlanWord> words = [] {
    SmallVector<PlanWord> words = wordsOf<BufferKind>(getMaxEnumValForBufferKind());
    words.push_back({"padding", kGaps});
    return words;
  }();
  return words;
}

ArrayRef<PlanWord> dsopt::trafficWords() {
  static const SmallVector<PlanWord> words = [] {
    SmallVector<PlanWord> words = wordsOf<Traffic>(getMaxEnumValForTraffic());
    words.push_back({"padding", kFill});
    return words;
  }();
  return words;
}

ArrayRef<PlanWord> dsopt::copyTargets() {
  static const SmallVector<PlanWord> words = wordsOf<MemoryKind>(getMaxEnumValForMemoryKind());
  return words;
}
