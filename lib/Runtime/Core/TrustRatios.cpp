//===- TrustRatios.cpp - updates by the norms of whole parameters ----------===//

#include "Core/TrustRatios.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dsopt::runtime {

static_assert(kTrustWords == 2 * ExactSum::kDigits);

size_t TrustRatios::addDirection(const Action &action, int64_t first) {
  auto [parameters, isNew] = held.try_emplace(action.bucket);
  if (isNew) {
    int64_t words = position.buffers[action.temp.buffer].bytes / static_cast<int64_t>(sizeof(int64_t));
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      const Parameter &parameter = program.parameters[i];
      std::vector<Part> parts = partsOf(parameter);
      if (!parameter.trainable || std::none_of(parts.begin(), parts.end(), [&](const Part &part) {
            return part.bucket == action.bucket;
          }))
        continue;
      int64_t at = action.temp.offset / static_cast<int64_t>(sizeof(int64_t)) +
                   static_cast<int64_t>(parameters->second.size()) * kTrustWords;
      if (at + kTrustWords > words)
        throw Error(StatusInput, "program table: the record of '" + action.name + "' has no room for '" +
                                     parameter.name + "'");
      Places &its = places[static_cast<int64_t>(i)];
      its.words = words;
      its.at.push_back(at);
      parameters->second.push_back(static_cast<int64_t>(i));
    }
  }
  Direction direction;
  // The master, where parameters are stored in less, is the first state.
  bool isNarrow = program.buckets[action.bucket].type != "f32";
  auto sums = [&](size_t ref) {
    auto squares = std::make_unique<SquareSums>(program, pool.threads(), /*byParameter=*/true);
    squares->addRange(action.bucket, Element::F32, addresses.at(action.refs[ref]), first, action.elements);
    return squares;
  };
  direction.weights = sums(isNarrow ? 2 : 0);
  direction.steps = sums(1);
  direction.parameters = &parameters->second;
  direction.record = reinterpret_cast<int64_t *>(addresses.at(action.temp));
  direction.adds = action.from > 0;
  if (coefficients)
    coefficients->addDirection(action, first);
  directions.push_back(std::move(direction));
  return directions.size() - 1;
}

/// The digits of a sum in a record, without what lies above them; `factor` takes it if it is larger.
static ExactSum sumIn(const int64_t *record, bool hasFactor, float &factor) {
  ExactSum sum;
  std::copy_n(record, ExactSum::kDigits, sum.digits);
  if (!hasFactor)
    return sum;
  int64_t &word = sum.digits[kFactorWord];
  auto bits = static_cast<int32_t>(word >> kFactorShift);
  float its;
  std::memcpy(&its, &bits, sizeof(its));
  factor = std::max(factor, its);
  word &= (int64_t(1) << kFactorShift) - 1;
  return sum;
}

void TrustRatios::measure(size_t number) {
  Direction &direction = directions[number];
  if (isFrozen()) {
    coefficients->measure(number);
  } else {
    direction.weights->compute(0, pool);
    direction.steps->compute(0, pool);
  }
  int64_t *record = direction.record;
  for (int64_t parameter : *direction.parameters) {
    LambCoefficients::Measured measured;
    if (isFrozen())
      measured = coefficients->of(number, parameter);
    else
      measured = {direction.weights->of(parameter), direction.steps->of(parameter)};
    for (ExactSum *sum : {&measured.own, &measured.along}) {
      if (direction.adds) {
        sum->add(record);
        sum->normalize();
      }
      record = std::copy_n(sum->digits, ExactSum::kDigits, record);
    }
    if (!isFrozen())
      continue;
    int32_t bits;
    std::memcpy(&bits, &measured.factor, sizeof(bits));
    record[kFactorWord - kTrustWords] |= static_cast<int64_t>(bits) << kFactorShift;
  }
}

float *TrustRatios::addLaunch(const float *group, int64_t parameter, const Part &part, float *table) {
  if (!places.count(parameter))
    throw Error(StatusInput, "program table: an update goes by the norm of '" +
                                 program.parameters[parameter].name + "', which no direction has before it");
  float *numbers = coefficients ? coefficientsOf(program, addresses, part) : nullptr;
  tables.push_back({group, parameter, table, numbers, {}});
  return table ? table : tables.back().values.data();
}

void TrustRatios::writeTables(const Action &action, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    Table &table = tables[i];
    std::copy_n(table.group, DSOPT_SCALARS, table.values.begin());
    table.values[DSOPT_TRUST] = ratio(table, action);
  }
}

int64_t TrustRatios::ranksOf(const Action &action, int64_t words) const {
  return position.buffers[action.temp.buffer].bytes / static_cast<int64_t>(sizeof(int64_t)) / words;
}

float TrustRatios::ratio(const Table &table, const Action &action) const {
  auto *records = reinterpret_cast<const int64_t *>(addresses.at(action.temp));
  const auto &[words, at] = places.at(table.parameter);
  int64_t ranks = ranksOf(action, words);
  ExactSum weight, step;
  float factor = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t place : at) {
      const int64_t *record = records + rank * words + place;
      weight.add(sumIn(record, isFrozen(), factor));
      step.add(record + ExactSum::kDigits);
    }
  weight.normalize();
  step.normalize();
  double lengths[] = {std::sqrt(weight.value()), std::sqrt(step.value())};
  if (double root = rootOf(table.parameter); root > 0)
    return static_cast<float>(std::max(lengths[0] / root, DSOPT_LEAST_LENGTH));
  if (coefficients)
    return coefficients->ratio(table.numbers, table.group, lengths, factor);
  return static_cast<float>(rule().ratio(lengths[0], lengths[1]));
}

LambRule TrustRatios::rule() const {
  return coefficients ? coefficients->rule
                      : LambRule{DSOPT_LEAST_TRUST, DSOPT_LARGEST_TRUST, 0, 0, 0, 0, false};
}

double TrustRatios::rootOf(int64_t parameter) const {
  if (program.optimizer != "adafactor")
    return 0;
  return std::sqrt(static_cast<double>(elementsOf(program.parameters[parameter])));
}

} // namespace dsopt::runtime
