//===- LambCoefficients.cpp - what 1-bit LAMB keeps by parameter ----------===//

#include "Core/LambCoefficients.h"
#include "Core/Agreement.h"
#include "Core/Parameters.h"
#include "Core/SquareSums.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dsopt::runtime {

/// Elements that a thread takes at a time, and of those that are in registers and caches at once.
static constexpr int64_t kPiece = 64 << 10, kChunk = 1024;

std::map<int64_t, int64_t> coefficientPlaces(const Program &program, int64_t bucket) {
  std::map<int64_t, int64_t> places;
  for (const Parameter &parameter : program.parameters)
    for (const Part &part : partsOf(parameter))
      if (part.bucket == bucket)
        places[part.bucket_offset] = 0;
  int64_t number = 0;
  for (auto &[offset, place] : places)
    place = number++;
  return places;
}

float *coefficientsOf(const Program &program, const Addresses &addresses, const Part &part) {
  const Bucket &bucket = program.buckets[part.bucket];
  const Buffer *buffer = addresses.find(bucket.name + "." + kCoefficients);
  std::map<int64_t, int64_t> places = coefficientPlaces(program, part.bucket);
  if (!buffer || buffer->bytes < static_cast<int64_t>(places.size() * DSOPT_COEFFICIENTS * sizeof(float)))
    throw Error(StatusInput, "program table: bucket '" + bucket.name + "' has no room for coefficients of " +
                                 std::to_string(places.size()) + " parameters");
  return reinterpret_cast<float *>(addresses.at(*buffer)) +
         places.at(part.bucket_offset) * DSOPT_COEFFICIENTS;
}

void beginFactors(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                  ThreadPool &pool, bool isFirst) {
  auto isHere = [&](int64_t bucket) { return program.buckets[bucket].owner == info.position; };
  std::vector<int64_t> tracked = trainableParameters(program);
  std::vector<double> own(tracked.size(), -1), all(own.size() * engine.size());
  if (isFirst) {
    SquareSums squares(program, pool.threads(), /*byParameter=*/true);
    for (size_t i = 0; i < program.buckets.size(); ++i)
      if (const Buffer *momentum = addresses.find(program.buckets[i].name + ".m"))
        squares.addRange(static_cast<int64_t>(i), Element::F32, addresses.at(*momentum), 0,
                         program.buckets[i].padded);
    for (size_t range = 0; range < squares.ranges(); ++range)
      squares.compute(range, pool);
    for (size_t i = 0; i < tracked.size(); ++i) {
      const Parameter &parameter = program.parameters[tracked[i]];
      if (isHere(partsOf(parameter).front().bucket))
        own[i] =
            std::sqrt(squares.of(tracked[i]).value()) / std::sqrt(static_cast<double>(elementsOf(parameter)));
    }
    engine.exchange(own.data(), static_cast<int64_t>(own.size() * sizeof(double)), all.data());
    double sum = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      for (size_t rank = 0; own[i] < 0 && rank < all.size() / own.size(); ++rank)
        own[i] = all[rank * own.size() + i];
      sum += own[i];
    }
    double united = sum / static_cast<double>(own.size());
    for (double &one : own)
      one = one > 0 ? std::min<double>(united / one, std::numeric_limits<float>::max()) : 1;
  }
  for (size_t i = 0; i < tracked.size(); ++i) {
    std::vector<Part> parts = partsOf(program.parameters[tracked[i]]);
    if (!isHere(parts.front().bucket))
      continue;
    float *numbers = coefficientsOf(program, addresses, parts.front());
    if (isFirst) {
      numbers[DSOPT_LAST_FACTOR] = 1;
      numbers[DSOPT_MOMENTUM_SCALE] = static_cast<float>(own[i]);
    }
    for (size_t part = 1; part < parts.size(); ++part)
      std::copy_n(numbers, DSOPT_COEFFICIENTS, coefficientsOf(program, addresses, parts[part]));
  }
}

LambCoefficients::LambCoefficients(const Program &program, const Addresses &addresses,
                                   const RunOptions &options, ThreadPool &pool, bool isFrozen)
    : rule{options.lamb.leastCoeff,
           options.lamb.largestCoeff,
           options.lamb.coeffBeta,
           options.lamb.factorMin,
           options.lamb.factorMax,
           options.lamb.factorThreshold,
           isFrozen},
      eps(static_cast<float>(options.eps)), decays(options.weightDecay > 0), program(program),
      addresses(addresses), pool(pool) {}

void LambCoefficients::addDirection(const Action &action, int64_t first) {
  // The master, where parameters are stored in less, is the first state.
  size_t states = program.buckets[action.bucket].type == "f32" ? 2 : 3;
  if (action.refs.size() < states + 3)
    throw Error(StatusInput, "program table: '" + action.name + "' has no momentum and two variances");
  if (action.elements != program.buckets[action.bucket].padded)
    throw Error(StatusInput, "program table: '" + action.name +
                                 "' has a part of its bucket, expected all of " +
                                 std::to_string(program.buckets[action.bucket].padded) + " elements");
  auto at = [&](size_t ref) { return reinterpret_cast<const float *>(addresses.at(action.refs[ref])); };
  Direction direction{{at(1), at(states), at(states + 1), at(states + 2)}, {}};
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    for (const Part &part : partsOf(parameter))
      if (part.bucket == action.bucket && parameter.trainable)
        for (int64_t at = 0; at < part.elements; at += kPiece)
          direction.pieces.push_back({static_cast<int64_t>(i),
                                      part.bucket_offset + at - first,
                                      std::min(kPiece, part.elements - at),
                                      {}});
  }
  directions.push_back(std::move(direction));
}

void LambCoefficients::measure(size_t number) {
  Direction &direction = directions[number];
  pool.forEach(static_cast<int64_t>(direction.pieces.size()), 1, [&](int64_t index, int) {
    Piece &piece = direction.pieces[index];
    Measured measured;
    float quotients[kChunk], factors[kChunk];
    int32_t largest = 0; // of numbers that are not negative: their bits have their order
    for (int64_t at = 0; at < piece.elements; at += kChunk) {
      int64_t begin = piece.begin + at, count = std::min(kChunk, piece.elements - at);
      const float *momentum = direction.operands.momentum + begin,
                  *variance = direction.operands.variance + begin, *fresh = direction.operands.fresh + begin;
      for (int64_t i = 0; i < count; ++i) {
        float root = std::sqrt(variance[i]) + eps, one = momentum[i] / root,
              factor = root / (std::sqrt(fresh[i]) + eps);
        quotients[i] = variance[i] > 0 ? one : 0;
        factors[i] = variance[i] > 0 ? factor : 0;
      }
      for (int64_t i = 0; i < count; ++i) {
        int32_t bits;
        std::memcpy(&bits, &factors[i], sizeof(bits));
        largest = std::max(largest, bits);
      }
      if (!decays)
        continue; // no share of it
      measured.own.addSquares(quotients, count);
      measured.along.addSquares(direction.operands.along + begin, count);
    }
    std::memcpy(&measured.factor, &largest, sizeof(largest));
    measured.own.normalize();
    measured.along.normalize();
    piece.measured = measured;
  });
}

LambCoefficients::Measured LambCoefficients::of(size_t direction, int64_t parameter) const {
  Measured all;
  for (const Piece &piece : directions[direction].pieces)
    if (piece.parameter == parameter) {
      all.own.add(piece.measured.own);
      all.along.add(piece.measured.along);
      all.factor = std::max(all.factor, piece.measured.factor);
    }
  all.own.normalize();
  all.along.normalize();
  return all;
}

float LambCoefficients::ratio(float *numbers, const float *table, const double *lengths, float factor) const {
  bool applies = table[DSOPT_APPLY] != 0;
  if (!rule.isFrozen) {
    auto ratio = static_cast<float>(rule.ratio(lengths[0], lengths[1]));
    if (applies)
      numbers[DSOPT_FROZEN_TRUST] = rule.nextMean(numbers[DSOPT_FROZEN_TRUST], ratio);
    return ratio;
  }
  double next = rule.nextFactor(numbers[DSOPT_LAST_FACTOR], factor, lengths[0], lengths[1],
                                table[DSOPT_WEIGHT_DECAY] > 0);
  if (applies)
    numbers[DSOPT_LAST_FACTOR] = static_cast<float>(next);
  return static_cast<float>(numbers[DSOPT_FROZEN_TRUST] * next);
}

} // namespace dsopt::runtime
