//===- StepDecision.cpp - what a step's agreement leads to -----------------===//
//
// All ranks have the same numbers: whether the step's updates apply, what they
// multiply gradients by, and how much the next step's loss is scaled.
//
//===----------------------------------------------------------------------===//

#include "Core/Executor.h"
#include "Core/LocalSteps.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dsopt::runtime {

void Executor::writeTables(const Decision &decision) {
  // A variance that is not updated in each step is corrected for those that do.
  int64_t varianceSteps =
      movesApart(program) ? countWhole(program.local_policy, program.freeze_step, decision.appliedSteps + 1)
                          : 0;
  for (ScalarTable &table : tables)
    writeScalars(decision, options, program.optimizer, table.lrScale, table.decayScale, table.values,
                 frozenSince(), varianceSteps);
  if (device)
    uploadTables();
}

/// Backward begins with the loss's own gradient: the mean over micro-batches, scaled.
void Executor::writeSeed() {
  const Buffer *buffer = addresses.find("seed");
  if (!buffer || !lossScale)
    return;
  auto *seed = reinterpret_cast<float *>(addresses.at(*buffer));
  *seed = static_cast<float>(lossScale->scale() / static_cast<double>(program.K));
  if (device)
    uploadSeed(seed);
}

void Executor::decide() {
  agreement->read();
  if (evaluates)
    return;
  bool skips = lossScale && !agreement->isFinite();
  if (!skips)
    agreement->checkFinite(step);
  double scale = lossScale ? lossScale->scale() : 1;
  double divisor = skips ? std::numeric_limits<double>::quiet_NaN() : scale;
  // Ranks have parts of the sum. Each takes its own for the mean, and all are as long as they are in the
  // root of the mean square.
  double ranks = hasOwnGradients() ? static_cast<double>(program.dp()) : 1;
  divisor /= std::sqrt(ranks);
  double norm = std::sqrt(agreement->squares()) / divisor;
  result->loss = agreement->loss();
  result->metrics = agreement->metrics();
  result->gradNorm = static_cast<float>(norm);
  result->stop = agreement->stop();
  result->writing = agreement->writing();
  if (options.logNorms)
    agreement->norms(divisor, result->gradNorms);
  if (options.logLosses)
    result->losses = agreement->losses();
  Decision decision;
  decision.appliedSteps = *appliedSteps;
  decision.lr = result->lr;
  decision.factor = (program.clip ? clipFactor(options.gradClip, norm) : 1.0) * ranks / scale;
  decision.apply = !skips;
  if (ListKind kind = kindOfList(list); kind == ListKind::LocalStep || kind == ListKind::JoinStep) {
    decision.rates = *rates + decision.lr;
    if (!skips)
      *rates = kind == ListKind::JoinStep ? 0 : decision.rates;
  }
  applies = decision.apply;
  // Updates that lag have read theirs.
  if (!pending)
    writeTables(decision);
  else if (skips)
    pending->reset();
  else
    *pending = decision;
  if (!skips)
    ++*appliedSteps;
  // Times are measured where everything is waited for.
  leaves = device && !rt.profile && !trace && !options.breakdown && !checked;
  if (!lossScale)
    return;
  result->skipped = skips;
  result->lossScale = scale;
  if (!lossScale->update(skips)) {
    Error error(StatusFailure,
                "step " + std::to_string(step) + " overflows in fp16 at the least loss scale, " +
                    jsonNumber(scale) +
                    " (-min-loss-scale): its loss or gradients are not finite; the run ends before anything "
                    "of it is saved",
                /*quiet=*/info.rank != 0);
    error.recurs = true;
    throw error;
  }
}

} // namespace dsopt::runtime
