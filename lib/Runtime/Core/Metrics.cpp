//===- Metrics.cpp - numbers that a run logs beside its loss --------------===//

#include "dsopt/Runtime/Metrics.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace dsopt::runtime {

int64_t elementsOf(const std::vector<Metric> &metrics) {
  int64_t elements = 0;
  for (const Metric &metric : metrics)
    elements = std::accumulate(metric.parts.begin(), metric.parts.end(), elements);
  return elements;
}

/// Of one class; 0 where there is nothing to divide by, as scikit-learn has it.
static double scoreOf(Combine combine, double hits, double predictions, double labels) {
  double divisor = combine == Combine::Precision ? predictions
                   : combine == Combine::Recall  ? labels
                                                 : (predictions + labels) / 2;
  return divisor > 0 ? hits / divisor : 0;
}

/// Of two classes that of the second, else the mean over those that are a label or a prediction.
static double scoreOf(Combine combine, const double *sums, int64_t classes) {
  auto of = [&](int64_t i) { return scoreOf(combine, sums[i], sums[classes + i], sums[2 * classes + i]); };
  if (classes == 2)
    return of(1);
  double total = 0, seen = 0;
  for (int64_t i = 0; i < classes; ++i)
    if (sums[classes + i] + sums[2 * classes + i] > 0) {
      total += of(i);
      ++seen;
    }
  return seen > 0 ? total / seen : std::numeric_limits<double>::quiet_NaN();
}

static double valueOf(const Metric &metric, const double *sums, int64_t microBatches) {
  switch (metric.combine) {
  case Combine::Mean:
    return sums[0] / static_cast<double>(microBatches);
  case Combine::Root:
    return std::sqrt(sums[0] / static_cast<double>(microBatches));
  case Combine::Ratio:
    return sums[0] / sums[1];
  case Combine::Exponential:
    return std::exp(sums[0] / sums[1]);
  default:
    return scoreOf(metric.combine, sums, metric.parts[0]);
  }
}

std::vector<float> combineMetrics(const std::vector<Metric> &metrics, const std::vector<double> &sums,
                                  int64_t microBatches) {
  std::vector<float> values;
  const double *next = sums.data();
  for (const Metric &metric : metrics) {
    values.push_back(static_cast<float>(valueOf(metric, next, microBatches)));
    next += std::accumulate(metric.parts.begin(), metric.parts.end(), int64_t(0));
  }
  return values;
}

} // namespace dsopt::runtime
