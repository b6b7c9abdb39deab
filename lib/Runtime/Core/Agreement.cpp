//===- Agreement.cpp - the step's one exact exchange -----------------------===//

#include "Core/Agreement.h"
#include "Core/Parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dsopt::runtime {

/// Of a norm's record: digits, then the first parameter that is not finite, or -1.
enum NormWord { NonFiniteParameter = ExactSum::kDigits, NormWords };
static_assert(NormWords == kNormWords);

/// Words of a record: sums are the digits, the parameters' digits behind them; bits the requests, then K
/// losses, then what each of the K micro-batches gives of the metrics; of these the least counts. A rank's
/// place in the run is its step, list and number in one word, so that the least and the greatest name a rank
/// too.
enum LeastWord { First, Last, NonFinite, LossStage, LeastWords };
enum RequestBit { StopRequest = 1, WritingRequest = 2 };
constexpr int kRankBits = 20, kListBits = 10;

static std::string describeMoment(int64_t moment) {
  int64_t rank = moment & ((1 << kRankBits) - 1), list = moment >> kRankBits & ((1 << kListBits) - 1),
          step = moment >> (kRankBits + kListBits);
  return "rank " + std::to_string(rank) + " is in " +
         (kindOfList(list) == ListKind::Evaluation ? "an evaluation, group " : "step ") +
         std::to_string(step);
}

std::vector<int64_t> trainableParameters(const Program &program) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < program.parameters.size(); ++i)
    if (program.parameters[i].trainable)
      result.push_back(i);
  return result;
}

void normsOf(const int64_t *records, int64_t stride, int64_t count, const std::vector<int64_t> &tracked,
             double scale, std::vector<float> &result) {
  std::fill(result.begin(), result.end(), -1.0f);
  for (size_t i = 0; i < tracked.size(); ++i) {
    ExactSum sum;
    for (int64_t rank = 0; rank < count; ++rank)
      sum.add(records + rank * stride + i * ExactSum::kDigits);
    result[tracked[i]] = static_cast<float>(std::sqrt(sum.value()) / scale);
  }
}

Agreement::Agreement(const Program &program, const RankInfo &info, const Addresses &addresses,
                     bool byParameter, ThreadPool &pool)
    : program(program), info(info), addresses(addresses), pool(pool),
      gradients(program, pool.threads(), byParameter) {
  if (byParameter)
    tracked = trainableParameters(program);
  recordShape.sums = (1 + tracked.size()) * ExactSum::kDigits;
  measured = elementsOf(program.metrics);
  recordShape.bits = 1 + program.K + program.K * measured;
  recordShape.least = LeastWords;
  requestWord = recordShape.sums;
  lossWords = requestWord + 1;
  measureWords = lossWords + program.K;
  leastWords = measureWords + program.K * measured;
  words.resize(recordShape.words());
  byMicroBatch.resize(program.K);
  elements.resize(program.K * measured);
}

size_t Agreement::addNorm(const Action &action) {
  const Bucket &bucket = program.buckets[action.bucket];
  int64_t slice = program.sliceOf(bucket);
  records.push_back(reinterpret_cast<int64_t *>(addresses.at(action.refs[1])));
  int64_t count = action.whole ? bucket.padded : slice;
  // What ranks along tp have alike counts once.
  if (!bucket.distinct && tensorRank(info) > 0)
    count = 0;
  return gradients.addRange(action.bucket, elementNamed(action.type), addresses.at(action.refs[0]),
                            action.whole ? 0 : info.slice * slice, count);
}

void Agreement::addAgreement(const Action &action) {
  if (agrees)
    throw Error(StatusInput, "program table: more than one agreement a step");
  agrees = true;
  size_t lastMeasure = action.refs.size() - action.outputs.size() * program.M;
  size_t firstMeasure = lastMeasure - action.places.size() * program.M;
  for (size_t i = 0; i < lastMeasure; ++i) {
    const char *address = addresses.at(action.refs[i]);
    if (static_cast<int64_t>(i) < action.norms)
      agreed.push_back(reinterpret_cast<const int64_t *>(address));
    else if (i < firstMeasure)
      parts.push_back(reinterpret_cast<const float *>(address));
    else
      measures.push_back({reinterpret_cast<const float *>(address),
                          action.places[(i - firstMeasure) / program.M],
                          action.lengths[(i - firstMeasure) / program.M],
                          static_cast<int64_t>(i - firstMeasure) % program.M});
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

void Agreement::prepare(bool stop, bool writing, int64_t step, size_t list) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  ExactSum total;
  int64_t *least = words.data() + leastWords;
  least[NonFinite] = least[LossStage] = kNone;
  for (const int64_t *record : agreed) {
    total.add(record);
    if (record[NonFiniteParameter] >= 0)
      least[NonFinite] = std::min(least[NonFinite], record[NonFiniteParameter]);
  }
  total.normalize();
  std::copy_n(total.digits, ExactSum::kDigits, words.begin());
  for (size_t i = 0; i < tracked.size(); ++i)
    std::copy_n(gradients.of(tracked[i]).digits, ExactSum::kDigits,
                words.begin() + (i + 1) * ExactSum::kDigits);
  words[requestWord] = (stop ? StopRequest : 0) | (writing ? WritingRequest : 0);
  std::fill(words.begin() + lossWords, words.begin() + leastWords, 0);
  for (size_t p = 0; p < parts.size(); ++p) {
    double loss = *parts[p];
    std::memcpy(&words[lossWords + microBatchIndex(program, info.dpRank, p)], &loss, sizeof(loss));
    least[LossStage] = info.position;
  }
  for (const Measure &measure : measures)
    for (int64_t e = 0; e < measure.length; ++e) {
      double value = measure.values[e];
      int64_t microBatch = microBatchIndex(program, info.dpRank, measure.microBatch);
      std::memcpy(&words[measureWords + microBatch * measured + measure.place + e], &value, sizeof(value));
    }
  int64_t moment = (step << kListBits | static_cast<int64_t>(list)) << kRankBits | info.rank;
  least[First] = moment;
  least[Last] = ~moment;
}

void Agreement::read() {
  const int64_t *least = words.data() + leastWords;
  int64_t first = least[First], last = ~least[Last];
  if (first >> kRankBits != last >> kRankBits)
    throw Error(StatusFailure,
                "the ranks are not in one step: " + describeMoment(first) + ", " + describeMoment(last) +
                    "; the run ends before anything of it is saved",
                /*quiet=*/info.rank != 0);
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  nonFinite = least[NonFinite] == kNone ? -1 : least[NonFinite];
  lossStage = least[LossStage] == kNone ? -1 : least[LossStage];
  sum = {};
  sum.add(words.data());
  sum.normalize();
  anyStop = words[requestWord] & StopRequest;
  anyWriting = words[requestWord] & WritingRequest;
  std::memcpy(byMicroBatch.data(), words.data() + lossWords, program.K * sizeof(double));
  if (!elements.empty())
    std::memcpy(elements.data(), words.data() + measureWords, elements.size() * sizeof(double));
}

void Agreement::addMetrics(int64_t microBatches, std::vector<double> &sums) const {
  for (int64_t microBatch = 0; microBatch < microBatches; ++microBatch)
    for (int64_t e = 0; e < measured; ++e)
      sums[e] += elements[microBatch * measured + e];
}

std::vector<float> Agreement::metrics() const {
  std::vector<double> sums(measured);
  addMetrics(program.K, sums);
  return combineMetrics(program.metrics, sums, program.K);
}

float Agreement::loss() const {
  double total = 0;
  for (double loss : byMicroBatch)
    total += loss;
  return static_cast<float>(total / program.K);
}

bool Agreement::isFinite() const {
  return nonFinite < 0 &&
         std::all_of(
             byMicroBatch.begin(), byMicroBatch.end(), [](double loss) { return std::isfinite(loss); });
}

void Agreement::checkFinite(int64_t step) const {
  auto refuse = [&](const std::string &what, int64_t stage) {
    Error error(StatusFailure,
                what + " (stage " + std::to_string(stage) + "); the run ends before anything of it is saved",
                /*quiet=*/info.rank != 0);
    error.recurs = true;
    throw error;
  };
  for (int64_t i = 0; i < program.K; ++i)
    if (!std::isfinite(byMicroBatch[i]))
      refuse("the loss of step " + std::to_string(step) + " is not finite: " +
                 (std::isnan(byMicroBatch[i]) ? "nan" : "inf") + " in micro-batch " + std::to_string(i),
             lossStage);
  if (nonFinite >= 0) {
    const Parameter &parameter = program.parameters[nonFinite];
    refuse("the gradient of parameter '" + parameter.name + "' is not finite in step " + std::to_string(step),
           program.buckets[partsOf(parameter).front().bucket].owner);
  }
}

void Agreement::norms(double scale, std::vector<float> &result) const {
  normsOf(words.data() + ExactSum::kDigits, 0, 1, tracked, scale, result);
}

} // namespace dsopt::runtime
