//===- SquareSums.cpp - exact sums of squares by parameter -----------------===//

#include "Core/SquareSums.h"
#include "Core/Addresses.h"

#include <algorithm>

namespace dsopt::runtime {

/// Elements that a thread takes at a time.
static constexpr int64_t kPiece = 64 << 10;

SquareSums::SquareSums(const Program &program, int threads, bool byParameter)
    : program(program), partials(threads), sums(byParameter ? program.parameters.size() : 0) {
  for (Partial &partial : partials)
    partial.parameters.resize(sums.size());
}

size_t SquareSums::addRange(int64_t bucket, Element type, const void *values, int64_t first, int64_t count) {
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    if (parameter.bucket != bucket || !parameter.trainable)
      continue;
    int64_t begin = std::max(parameter.bucket_offset, first);
    int64_t end = std::min(parameter.bucket_offset + elementsOf(parameter), first + count);
    for (; begin < end; begin += kPiece)
      pieces.push_back({type, static_cast<const char *>(values) + (begin - first) * bytesOf(type),
                        std::min(kPiece, end - begin), static_cast<int64_t>(i)});
  }
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
        body(pieces[i].parameter);
  };
  for (Partial &partial : partials) {
    partial.total = {};
    partial.nonFinite = -1;
    eachParameter([&](int64_t parameter) { partial.parameters[parameter] = {}; });
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
      partial.parameters[piece.parameter].add(squares);
  });
  sum = {};
  firstNonFinite = -1;
  for (const Partial &partial : partials) {
    sum.add(partial.total);
    if (partial.nonFinite >= 0 && (firstNonFinite < 0 || partial.nonFinite < firstNonFinite))
      firstNonFinite = partial.nonFinite;
  }
  sum.normalize();
  eachParameter([&](int64_t parameter) {
    sums[parameter] = {};
    for (const Partial &partial : partials)
      sums[parameter].add(partial.parameters[parameter]);
    sums[parameter].normalize();
  });
}

} // namespace dsopt::runtime
