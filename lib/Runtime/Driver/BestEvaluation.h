//===- BestEvaluation.h - the best evaluation of a run ----------*- C++ -*-===//
//
// What -stop-after and -keep-best go by: the loss of -eval-data, or the metric that
// -best-metric names. Evaluations are equal on all ranks, and so is what follows here.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_BESTEVALUATION_H
#define DSOPT_LIB_RUNTIME_DRIVER_BESTEVALUATION_H

#include "RunSettings.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

class BestEvaluation {
public:
  /// An Error of status 1 if the program does not measure the metric, or nobody knows which way it is better.
  BestEvaluation(const Program &program, const RunSettings &settings);

  /// The best that the folder of -save has, if the run goes on from a checkpoint and that was of the same
  /// metric; else no number. On rank 0, which tells the others.
  double before() const;
  /// Goes on from it.
  void goOn(double before);
  /// Whether it is better than all before.
  bool see(const Evaluation &evaluation);
  /// Why the run ends now; empty: it goes on.
  std::string reasonToStop() const;
  /// Writes beside the checkpoint `best`, of `step` steps, what it is: best.json.
  void record(int64_t step) const;

private:
  const RunSettings &settings;
  std::string name; ///< as the log has it: eval_loss, eval_accuracy ...
  int64_t place;    ///< among the program's metrics; -1: the loss
  bool isLarger;    ///< is better
  double best = 0;  ///< where one is known
  bool isKnown = false;
  int64_t waited = 0; ///< evaluations since
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_BESTEVALUATION_H
