//===- SquareSums.h - exact sums of squares by parameter --------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_SQUARESUMS_H
#define DSOPT_LIB_RUNTIME_CORE_SQUARESUMS_H

#include "Core/ThreadPool.h"
#include "Kernels/CPU/ExactSum.h"
#include "dsopt/Runtime/Element.h"
#include "dsopt/Runtime/Program.h"

namespace dsopt::runtime {

/// Sums the squares of ranges of buckets, leaving out padding: groups of 64
/// elements start at each parameter's start, wherever slices are cut.
class SquareSums {
public:
  /// `byParameter`: also one sum a parameter. Of the program's trainable parameters.
  SquareSums(const Program &program, int threads, bool byParameter);

  /// `values` are elements [first, first + count) of `bucket`; `first` is a multiple of 64. Returns the
  /// range's number.
  size_t addRange(int64_t bucket, Element type, const void *values, int64_t first, int64_t count);

  size_t ranges() const { return ends.size(); }
  /// Calls `body(values, elements, parameter)` for the pieces of a range.
  template <typename Body> void eachPiece(size_t range, Body body) const {
    for (size_t i = range ? ends[range - 1] : 0; i < ends[range]; ++i)
      body(pieces[i].values, pieces[i].elements, pieces[i].parameter);
  }
  /// Sums one range into `total`, and into its parameters' own sums, which start over.
  void compute(size_t range, ThreadPool &pool);
  /// The last range's sum, normalized.
  const ExactSum &total() const { return sum; }
  /// A parameter's own: over all ranges that it has a part of.
  ExactSum of(int64_t parameter) const;
  /// The first parameter of the last range with an element that is not finite, or -1.
  int64_t nonFinite() const { return firstNonFinite; }

private:
  struct Piece {
    Element type;
    const void *values;
    int64_t elements, parameter;
    size_t sum; ///< among `sums`
  };
  struct Partial {
    ExactSum total;
    int64_t nonFinite = -1;
    std::vector<ExactSum> parameters;
  };
  const Program &program;
  std::vector<Piece> pieces;
  std::vector<size_t> ends; ///< of each range among the pieces
  std::vector<Partial> partials;
  bool byParameter;
  std::vector<ExactSum> sums;              ///< of a parameter in a range
  std::vector<std::vector<size_t>> sumsOf; ///< by parameter
  ExactSum sum;
  int64_t firstNonFinite = -1;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_SQUARESUMS_H
