//===- LambCoefficients.cpp - what 1-bit LAMB keeps by parameter ----------===//

#include "Core/LambCoefficients.h"
#include "Core/Agreement.h"
#include "Core/Parameters.h"
#include "Core/SquareSums.h"

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

/// The numbers of a part.
static float *numbersOf(const Program &program, const Addresses &addresses, const Part &part) {
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
    float *numbers = numbersOf(program, addresses, parts.front());
    if (isFirst) {
      numbers[DSOPT_LAST_FACTOR] = 1;
      numbers[DSOPT_MOMENTUM_SCALE] = static_cast<float>(own[i]);
    }
    for (size_t part = 1; part < parts.size(); ++part)
      std::copy_n(numbers, DSOPT_COEFFICIENTS, numbersOf(program, addresses, parts[part]));
  }
}

void LambCoefficients::addDirection(const Action &action, int64_t first) {
  // The master, where parameters are stored in less, is the first state.
  size_t states = program.buckets[action.bucket].type == "f32" ? 2 : 3;
  if (action.refs.size() < states + 3)
    throw Error(StatusInput, "program table: '" + action.name + "' has no momentum and two variances");
  auto at = [&](size_t ref) { return reinterpret_cast<const float *>(addresses.at(action.refs[ref])); };
  Direction direction{at(1), at(states), at(states + 1), at(states + 2), {}};
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    std::vector<Part> parts = partsOf(parameter);
    for (const Part &part : parts) {
      int64_t begin = std::max(part.bucket_offset, first),
              end = std::min(part.bucket_offset + part.elements, first + action.elements);
      if (part.bucket != action.bucket || !parameter.trainable || begin >= end)
        continue;
      Kept &own = kept[static_cast<int64_t>(i)];
      own.numbers = numbersOf(program, addresses, parts.front());
      for (; begin < end; begin += kPiece) {
        own.pieces.push_back({directions.size(), direction.pieces.size()});
        direction.pieces.push_back(
            {static_cast<int64_t>(i), begin - first, std::min(kPiece, end - begin), {}, {}, 0});
      }
    }
  }
  directions.push_back(std::move(direction));
}

bool LambCoefficients::measure(size_t number) {
  Direction &direction = directions[number];
  for (const Piece &piece : direction.pieces)
    kept.at(piece.parameter).isDone = false;
  if (!isFrozen)
    return false;
  auto eps = static_cast<float>(options.eps);
  pool.forEach(static_cast<int64_t>(direction.pieces.size()), 1, [&](int64_t index, int) {
    Piece &piece = direction.pieces[index];
    piece.own = piece.along = {};
    float quotients[kChunk], factors[kChunk];
    int32_t largest = 0; // of numbers that are not negative: their bits have their order
    for (int64_t at = 0; at < piece.elements; at += kChunk) {
      int64_t begin = piece.begin + at, count = std::min(kChunk, piece.elements - at);
      const float *momentum = direction.momentum + begin, *variance = direction.variance + begin,
                  *fresh = direction.fresh + begin;
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
      if (!(options.weightDecay > 0))
        continue; // no share of it
      piece.own.addSquares(quotients, count);
      piece.along.addSquares(direction.along + begin, count);
    }
    std::memcpy(&piece.factor, &largest, sizeof(largest));
    piece.own.normalize();
    piece.along.normalize();
  });
  return true;
}

double LambCoefficients::factorOf(const Kept &own, bool decays) const {
  ExactSum alone, along;
  double factor = 0;
  for (auto [direction, number] : own.pieces) {
    const Piece &piece = directions[direction].pieces[number];
    alone.add(piece.own);
    along.add(piece.along);
    factor = std::max<double>(factor, piece.factor);
  }
  // Nothing of it takes part.
  if (factor == 0)
    return 1;
  alone.normalize();
  along.normalize();
  double length = std::sqrt(along.value());
  if (!decays || length == 0)
    return factor;
  double share = std::min(1.0, std::sqrt(alone.value()) / length);
  return factor * share + 1 - share;
}

float LambCoefficients::ratio(int64_t parameter, const float *table, double ofNorms) {
  std::lock_guard lock(mutex);
  Kept &own = kept.at(parameter);
  if (own.isDone)
    return own.ratio;
  own.isDone = true;
  const LambOptions &lamb = options.lamb;
  bool applies = table[DSOPT_APPLY] != 0;
  if (!isFrozen) {
    own.ratio = static_cast<float>(ofNorms);
    float &mean = own.numbers[DSOPT_FROZEN_TRUST];
    if (applies && own.ratio != 1)
      mean = static_cast<float>(lamb.coeffBeta * mean + (1 - lamb.coeffBeta) * own.ratio);
    return own.ratio;
  }
  double last = own.numbers[DSOPT_LAST_FACTOR];
  double factor = std::clamp(factorOf(own, table[DSOPT_WEIGHT_DECAY] > 0), lamb.factorMin, lamb.factorMax);
  factor = std::clamp(factor, last * (1 - lamb.factorThreshold), last * (1 + lamb.factorThreshold));
  if (applies)
    own.numbers[DSOPT_LAST_FACTOR] = static_cast<float>(factor);
  own.ratio = static_cast<float>(own.numbers[DSOPT_FROZEN_TRUST] * factor);
  return own.ratio;
}

} // namespace dsopt::runtime
