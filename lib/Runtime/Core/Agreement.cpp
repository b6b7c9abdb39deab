//===- Agreement.cpp - the step's one exact exchange -----------------------===//

#include "Core/Agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dsopt::runtime {

/// Of a norm's record: digits, then the first parameter that is not finite, or -1.
enum NormWord { NonFiniteParameter = ExactSum::kDigits, NormWords };
static_assert(NormWords == kNormWords);

/// Words of a rank's record: digits, then these, then M losses, then the parameters' digits.
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
                     bool byParameter, ThreadPool &pool)
    : program(program), info(info), addresses(addresses), pool(pool),
      gradients(program, pool.threads(), byParameter) {
  if (byParameter)
    tracked = trainableParameters(program);
  mine.resize(Losses + program.M + tracked.size() * ExactSum::kDigits);
  everyone.resize(mine.size() * program.dp * program.pp);
  byMicroBatch.resize(program.K);
}

size_t Agreement::addNorm(const Action &action) {
  int64_t slice = program.buckets[action.bucket].padded / program.dp;
  records.push_back(reinterpret_cast<int64_t *>(addresses.at(action.refs[1])));
  return gradients.addRange(action.bucket, elementNamed(action.type), addresses.at(action.refs[0]),
                            info.dpRank * slice, slice);
}

void Agreement::addAgreement(const Action &action) {
  if (agrees)
    throw Error(StatusInput, "program table: more than one agreement a step");
  agrees = true;
  for (size_t i = 0; i < action.refs.size(); ++i) {
    const char *address = addresses.at(action.refs[i]);
    if (static_cast<int64_t>(i) < action.norms)
      agreed.push_back(reinterpret_cast<const int64_t *>(address));
    else
      parts.push_back(reinterpret_cast<const float *>(address));
  }
  if (!parts.empty() && static_cast<int64_t>(parts.size()) != program.M)
    throw Error(StatusInput, "program table: agreement on " + std::to_string(parts.size()) +
                                 " losses, expected one for each of " + std::to_string(program.M) +
                                 " micro-batches");
}

void Agreement::computeNorm(size_t norm) {
  gradients.compute(norm, pool);
  std::copy_n(gradients.total().digits, ExactSum::kDigits, records[norm]);
  records[norm][NonFiniteParameter] = gradients.nonFinite();
}

void Agreement::prepare(bool stop) {
  ExactSum total;
  mine[NonFinite] = -1;
  for (const int64_t *record : agreed) {
    total.add(record);
    int64_t found = record[NonFiniteParameter];
    if (found >= 0 && (mine[NonFinite] < 0 || found < mine[NonFinite]))
      mine[NonFinite] = found;
  }
  total.normalize();
  std::copy_n(total.digits, ExactSum::kDigits, mine.begin());
  mine[Stop] = stop;
  mine[HasLosses] = !parts.empty();
  for (size_t p = 0; p < parts.size(); ++p) {
    double loss = *parts[p];
    std::memcpy(&mine[Losses + p], &loss, sizeof(loss));
  }
  for (size_t i = 0; i < tracked.size(); ++i)
    std::copy_n(gradients.of(tracked[i]).digits, ExactSum::kDigits,
                mine.begin() + Losses + program.M + i * ExactSum::kDigits);
}

void Agreement::merge() {
  nonFinite = lossStage = -1;
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
}

float Agreement::loss() const {
  double total = 0;
  for (double loss : byMicroBatch)
    total += loss;
  return static_cast<float>(total / program.K);
}

void Agreement::checkFinite(int64_t step) const {
  for (int64_t i = 0; i < program.K; ++i)
    if (!std::isfinite(byMicroBatch[i]))
      throw Error(StatusFailure,
                  "the loss of step " + std::to_string(step) +
                      " is not finite: " + (std::isnan(byMicroBatch[i]) ? "nan" : "inf") +
                      " in micro-batch " + std::to_string(i) + " (stage " + std::to_string(lossStage) +
                      "); the run ends before anything of it is saved",
                  /*quiet=*/info.rank != 0);
  if (nonFinite >= 0) {
    const Parameter &parameter = program.parameters[nonFinite];
    throw Error(StatusFailure,
                "the gradient of parameter '" + parameter.name + "' is not finite in step " +
                    std::to_string(step) + " (stage " +
                    std::to_string(program.buckets[parameter.bucket].owner) +
                    "); the run ends before anything of it is saved",
                /*quiet=*/info.rank != 0);
  }
}

void Agreement::norms(std::vector<float> &result) const {
  normsOf(everyone.data() + Losses + program.M, mine.size(), program.dp * program.pp, tracked, result);
}

} // namespace dsopt::runtime
