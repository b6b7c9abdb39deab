//===- SquareSums.cpp - exact sums of squares by parameter -----------------===//

#include "Core/SquareSums.h"
#include "Core/Addresses.h"

#include <algorithm>
#include <utility>

namespace dsopt::runtime {

/// Elements that a thread takes at a time.
static constexpr int64_t kPiece = 64 << 10;

SquareSums::SquareSums(const Program &program, int threads, bool byParameter)
    : program(program), partials(threads), byParameter(byParameter), sumsOf(program.parameters.size()) {}

size_t SquareSums::addRange(int64_t bucket, Element type, const void *values, int64_t first, int64_t count) {
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    bool isNew = true;
    for (const Part &part : partsOf(parameter)) {
      if (part.bucket != bucket || !parameter.trainable)
        continue;
      int64_t begin = std::max(part.bucket_offset, first);
      int64_t end = std::min(part.bucket_offset + part.elements, first + count);
      if (begin < end && std::exchange(isNew, false) && byParameter) {
        sumsOf[i].push_back(sums.size());
        sums.emplace_back();
      }
      for (; begin < end; begin += kPiece)
        pieces.push_back({type, static_cast<const char *>(values) + (begin - first) * bytesOf(type),
                          std::min(kPiece, end - begin), static_cast<int64_t>(i), sums.size() - 1});
    }
  }
  for (Partial &partial : partials)
    partial.parameters.resize(sums.size());
  ends.push_back(pieces.size());
  return ends.size() - 1;
}

void SquareSums::compute(size_t range, ThreadPool &pool) {
  size_t first = range ? ends[range - 1] : 0, last = ends[range];
  // The parameters of a range are neighbours among its pieces.
  auto eachParameter = [&](auto body) {
    if (sums.empty())
      return;
    for (size_t i = first; i < last; ++i)
      if (i == first || pieces[i].parameter != pieces[i - 1].parameter)
        body(pieces[i].sum);
  };
  for (Partial &partial : partials) {
    partial.total = {};
    partial.nonFinite = -1;
    eachParameter([&](size_t own) { partial.parameters[own] = {}; });
  }
  pool.forEach(last - first, 1, [&](int64_t index, int thread) {
    const Piece &piece = pieces[first + index];
    Partial &partial = partials[thread];
    ExactSum squares;
    withElement(piece.type, [&](auto element) {
      squares.addSquares(static_cast<const decltype(element) *>(piece.values), piece.elements);
    });
    squares.normalize();
    partial.total.add(squares);
    if (squares.nonFinite && (partial.nonFinite < 0 || piece.parameter < partial.nonFinite))
      partial.nonFinite = piece.parameter;
    if (!partial.parameters.empty())
      partial.parameters[piece.sum].add(squares);
  });
  sum = {};
  firstNonFinite = -1;
  for (const Partial &partial : partials) {
    sum.add(partial.total);
    if (partial.nonFinite >= 0 && (firstNonFinite < 0 || partial.nonFinite < firstNonFinite))
      firstNonFinite = partial.nonFinite;
  }
  sum.normalize();
  eachParameter([&](size_t own) {
    sums[own] = {};
    for (const Partial &partial : partials)
      sums[own].add(partial.parameters[own]);
    sums[own].normalize();
  });
}

ExactSum SquareSums::of(int64_t parameter) const {
  ExactSum total;
  for (size_t own : sumsOf[parameter])
    total.add(sums[own]);
  total.normalize();
  return total;
}

} // namespace dsopt::runtime
