//===- PlanWords.h - the classes of bytes that a plan tells apart -*- C++ -*-===//
#ifndef DSOPT_LIB_PIPELINE_PLANWORDS_H
#define DSOPT_LIB_PIPELINE_PLANWORDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace dsopt {
/// A class, by the name of its enumerator, and what is in it.
struct PlanWord {
  llvm::StringRef name, meaning;
};
/// Of buffers, in the order of plans, with the padding between them last.
llvm::ArrayRef<PlanWord> memoryWords();
/// Of what ranks send, with the padding of all of it last.
llvm::ArrayRef<PlanWord> trafficWords();
/// Of memories that are copied to; their names say all.
llvm::ArrayRef<PlanWord> copyTargets();

/// Columns of a table: a word, then as many stages as fit.
constexpr size_t kPlanLabel = 18;
} // namespace dsopt

#endif // DSOPT_LIB_PIPELINE_PLANWORDS_H
