//===- Agreement.h - the step's one exact exchange --------------*- C++ -*-===//
//
// Every rank contributes a record: the exact sum of squares of its gradient
// slices, computed bucket by bucket before, what is not finite, whether it was asked to stop, its losses, and
// which step it is in. The engine merges them, exactly, to one record that all ranks get (DESIGN 2.2).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_AGREEMENT_H
#define DSOPT_LIB_RUNTIME_CORE_AGREEMENT_H

#include "Core/Addresses.h"
#include "Core/SquareSums.h"
#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

class Agreement {
public:
  Agreement(const Program &program, const RankInfo &info, const Addresses &addresses, bool byParameter,
            ThreadPool &pool);

  /// Prepares a norm, or the agreement itself, which comes after its norms.
  size_t addNorm(const Action &action);
  void addAgreement(const Action &action);
  bool complete() const { return agrees; }

  /// What norms sum.
  const SquareSums &sums() const { return gradients; }
  /// Sums norm number `norm` into its record.
  void computeNorm(size_t norm);
  /// Fills this rank's record, of `step` of action list `list`; `writing`: its part of a checkpoint is not
  /// written yet.
  void prepare(bool stop, bool writing, int64_t step, size_t list);
  int64_t *record() { return words.data(); }
  const RecordShape &shape() const { return recordShape; }

  /// Reads what all records were merged to. Ranks that are not in one step are an Error, printed by rank 0.
  void read();
  /// Whether all losses and gradients are.
  bool isFinite() const;
  /// What is not finite is an Error that names `step` and place, printed by rank 0.
  void checkFinite(int64_t step) const;
  double squares() const { return sum.value(); }
  /// The mean of the losses.
  float loss() const;
  /// One a micro-batch, in order of index.
  const std::vector<double> &losses() const { return byMicroBatch; }
  /// Adds what the first micro-batches give of the metrics, in order of index.
  void addMetrics(int64_t microBatches, std::vector<double> &sums) const;
  /// The metrics of all of them.
  std::vector<float> metrics() const;
  bool stop() const { return anyStop; }
  bool writing() const { return anyWriting; }
  /// Gradient norms by parameter, of gradients that are `scale` times as large, -1 where there is none.
  void norms(double scale, std::vector<float> &result) const;

private:
  const Program &program;
  RankInfo info;
  const Addresses &addresses;
  ThreadPool &pool;
  SquareSums gradients;
  std::vector<int64_t *> records;      ///< of norms, in their order
  std::vector<const int64_t *> agreed; ///< records the agreement adds
  bool agrees = false;
  std::vector<const float *> parts; ///< losses by position in the run order; empty where the loss is not
  /// A part of a metric, of a micro-batch by its position in the run order.
  struct Measure {
    const float *values;
    int64_t place, length, microBatch;
  };
  std::vector<Measure> measures;
  int64_t measured = 0;         ///< elements that a micro-batch gives of all metrics
  std::vector<double> elements; ///< of all micro-batches, in order of index
  std::vector<int64_t> tracked; ///< parameters with sums of their own
  RecordShape recordShape;
  size_t requestWord, lossWords, measureWords, leastWords; ///< where they begin
  std::vector<int64_t> words;
  std::vector<double> byMicroBatch;
  ExactSum sum;
  int64_t nonFinite = -1; ///< the first parameter whose gradient is not finite
  int64_t lossStage = -1;
  bool anyStop = false, anyWriting = false;
};

/// Merges parameters' sums of squares, `ExactSum::kDigits` words each, to norms of what is `scale` times as
/// large.
void normsOf(const int64_t *records, int64_t stride, int64_t count, const std::vector<int64_t> &tracked,
             double scale, std::vector<float> &result);

/// The program's trainable parameters.
std::vector<int64_t> trainableParameters(const Program &program);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_AGREEMENT_H
