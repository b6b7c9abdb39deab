//===- Metrics.h - numbers that a run logs beside its loss ------*- C++ -*-===//
//
// Of each micro-batch a metric has one or more parts, arrays of f32 that the program computes. Parts are
// added in double, in the order of the micro-batches, and the sums become one number.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_METRICS_H
#define DSOPT_RUNTIME_METRICS_H

#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// How the sums of a metric's parts become its value.
enum class Combine {
  Mean,        ///< a / micro-batches
  Root,        ///< sqrt(a / micro-batches)
  Ratio,       ///< a / b
  Exponential, ///< exp(a / b)
  F1,          ///< of classes: hits, predictions, labels; of two the second's, else the mean over classes
  Precision,
  Recall
};
/// By Combine.
inline constexpr const char *const kCombines[] = {"mean", "root",      "ratio", "exponential",
                                                  "f1",   "precision", "recall"};
/// How many parts a metric has.
inline int64_t partsOf(Combine combine) {
  return combine <= Combine::Root ? 1 : combine <= Combine::Exponential ? 2 : 3;
}

struct Metric {
  std::string name;
  Combine combine = Combine::Mean;
  std::vector<int64_t> parts; ///< elements of each
};

/// Elements of the parts of all metrics: what a micro-batch gives.
int64_t elementsOf(const std::vector<Metric> &metrics);

/// The metrics' values from the sums over so many micro-batches of all their parts' elements, in order.
std::vector<float> combineMetrics(const std::vector<Metric> &metrics, const std::vector<double> &sums,
                                  int64_t microBatches);

/// The log's own keys: no metric can have such a name, nor one of these behind "eval_".
inline constexpr const char *const kLogKeys[] = {
    "step",        "loss",       "grad_norm",  "lr",         "step_ms", "samples_per_s", "tokens_per_s",
    "epoch",       "peak_bytes", "sent_bytes", "loss_scale", "skipped", "losses",        "grad_norms",
    "param_norms", "batches",    "ms",         "run",        "end",     "compare",       "breakdown"};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_METRICS_H
