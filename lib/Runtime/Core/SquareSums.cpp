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

void SquareSums::addRange(int64_t bucket, const float *values, int64_t first, int64_t count) {
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter &parameter = program.parameters[i];
    if (parameter.bucket != bucket || !parameter.trainable)
      continue;
    int64_t begin = std::max(parameter.bucket_offset, first);
    int64_t end = std::min(parameter.bucket_offset + elementsOf(parameter), first + count);
    for (; begin < end; begin += kPiece)
      pieces.push_back({values + (begin - first), std::min(kPiece, end - begin), static_cast<int64_t>(i)});
  }
}

void SquareSums::compute(ThreadPool &pool) {
  for (Partial &partial : partials) {
    partial.total = {};
    partial.nonFinite = -1;
    std::fill(partial.parameters.begin(), partial.parameters.end(), ExactSum());
  }
  pool.forEach(pieces.size(), 1, [&](int64_t index, int thread) {
    const Piece &piece = pieces[index];
    Partial &partial = partials[thread];
    ExactSum squares;
    squares.addSquares(piece.values, piece.elements);
    squares.normalize();
    partial.total.add(squares);
    if (squares.nonFinite && (partial.nonFinite < 0 || piece.parameter < partial.nonFinite))
      partial.nonFinite = piece.parameter;
    if (!partial.parameters.empty())
      partial.parameters[piece.parameter].add(squares);
  });
  sum = {};
  firstNonFinite = -1;
  std::fill(sums.begin(), sums.end(), ExactSum());
  for (const Partial &partial : partials) {
    sum.add(partial.total);
    if (partial.nonFinite >= 0 && (firstNonFinite < 0 || partial.nonFinite < firstNonFinite))
      firstNonFinite = partial.nonFinite;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i].add(partial.parameters[i]);
  }
  sum.normalize();
  for (ExactSum &one : sums)
    one.normalize();
}

} // namespace dsopt::runtime
