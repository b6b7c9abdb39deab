//===- Agreement.cpp - the step's one exact exchange -----------------------===//

#include "Core/Agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dsopt::runtime {

/// Words of a record: digits, then these, then M losses, then the parameters' digits.
enum Word { Stop = ExactSum::kDigits, NonFinite, HasLosses, Losses };

std::vector<int64_t> trainableParameters(const Program &program) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < program.parameters.size(); ++i)
    if (program.parameters[i].trainable)
      result.push_back(i);
  return result;
}

void normsOf(const int64_t *records, int64_t stride, int64_t count, const std::vector<int64_t> &tracked,
             std::vector<float> &result) {
  std::fill(result.begin(), result.end(), -1.0f);
  for (size_t i = 0; i < tracked.size(); ++i) {
    ExactSum sum;
    for (int64_t rank = 0; rank < count; ++rank)
      sum.add(records + rank * stride + i * ExactSum::kDigits);
    result[tracked[i]] = static_cast<float>(std::sqrt(sum.value()));
  }
}

Agreement::Agreement(const Program &program, const RankInfo &info, const Addresses &addresses,
                     const Action &action, bool byParameter, ThreadPool &pool)
    : program(program), info(info), pool(pool), gradients(program, pool.threads(), byParameter) {
  size_t count = action.buckets.size();
  for (size_t i = 0; i < count; ++i) {
    int64_t slice = program.buckets[action.buckets[i]].padded / program.dp;
    gradients.addRange(action.buckets[i], reinterpret_cast<const float *>(addresses.at(action.refs[i])),
                       info.dpRank * slice, slice);
  }
  for (size_t i = count; i < action.refs.size(); ++i)
    losses.push_back(reinterpret_cast<const float *>(addresses.at(action.refs[i])));
  if (!losses.empty() && static_cast<int64_t>(losses.size()) != program.M)
    throw Error(StatusInput, "program table: agreement on " + std::to_string(losses.size()) +
                                 " losses, expected one for each of " + std::to_string(program.M) +
                                 " micro-batches");
  if (byParameter)
    tracked = trainableParameters(program);
  mine.resize(Losses + program.M + tracked.size() * ExactSum::kDigits);
  everyone.resize(mine.size() * program.dp * program.pp);
  byMicroBatch.resize(program.K);
}

void Agreement::prepare(bool stop) {
  gradients.compute(pool);
  std::copy_n(gradients.total().digits, ExactSum::kDigits, mine.begin());
  mine[Stop] = stop;
  mine[NonFinite] = gradients.nonFinite();
  mine[HasLosses] = !losses.empty();
  for (size_t p = 0; p < losses.size(); ++p) {
    double loss = *losses[p];
    std::memcpy(&mine[Losses + p], &loss, sizeof(loss));
  }
  for (size_t i = 0; i < tracked.size(); ++i)
    std::copy_n(gradients.of(tracked[i]).digits, ExactSum::kDigits,
                mine.begin() + Losses + program.M + i * ExactSum::kDigits);
}

void Agreement::merge(int64_t step) {
  int64_t nonFinite = -1, lossStage = -1;
  sum = {};
  anyStop = false;
  std::fill(byMicroBatch.begin(), byMicroBatch.end(), 0.0);
  for (int rank = 0; rank < program.dp * program.pp; ++rank) {
    const int64_t *record = everyone.data() + rank * mine.size();
    sum.add(record);
    anyStop |= record[Stop] != 0;
    if (record[NonFinite] >= 0 && (nonFinite < 0 || record[NonFinite] < nonFinite))
      nonFinite = record[NonFinite];
    if (!record[HasLosses])
      continue;
    RankInfo from = rankInfo(program, rank);
    lossStage = from.position;
    for (int64_t p = 0; p < program.M; ++p)
      std::memcpy(&byMicroBatch[microBatchIndex(program, from.dpRank, p)], &record[Losses + p],
                  sizeof(double));
  }
  sum.normalize();
  double total = 0;
  for (int64_t i = 0; i < program.K; ++i) {
    if (!std::isfinite(byMicroBatch[i]))
      throw Error(StatusFailure,
                  "the loss of step " + std::to_string(step) + " is not finite: " +
                      (std::isnan(byMicroBatch[i]) ? "nan" : "inf") + " in micro-batch " + std::to_string(i) +
                      " (stage " + std::to_string(lossStage) + "); nothing of this step was applied",
                  /*quiet=*/info.rank != 0);
    total += byMicroBatch[i];
  }
  meanLoss = static_cast<float>(total / program.K);
  if (nonFinite >= 0) {
    const Parameter &parameter = program.parameters[nonFinite];
    throw Error(StatusFailure,
                "the gradient of parameter '" + parameter.name + "' is not finite in step " +
                    std::to_string(step) + " (stage " +
                    std::to_string(program.buckets[parameter.bucket].owner) +
                    "); nothing of this step was applied",
                /*quiet=*/info.rank != 0);
  }
}

void Agreement::norms(std::vector<float> &result) const {
  normsOf(everyone.data() + Losses + program.M, mine.size(), program.dp * program.pp, tracked, result);
}

} // namespace dsopt::runtime
