//===- ExactSum.h - sums of squares that no order changes -------*- C++ -*-===//
//
// DESIGN 2.1 rule 7. A group of 64 elements is squared and summed in fixed order
// in double; group sums go into a fixed-point number of 640 bits, so the result
// does not depend on the order in which groups or ranks are added.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_EXACTSUM_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_EXACTSUM_H

#include <cstdint>

namespace dsopt::runtime {

class ExactSum {
public:
  static constexpr int kDigits = 20;
  /// Digit i counts multiples of 2^(32 i - 320).
  int64_t digits[kDigits] = {};
  bool nonFinite = false;

  /// Adds a double that is 0, or between 2^-300 and 2^270; notes one that is not finite.
  void add(double value);
  /// Adds normalized digits.
  void add(const int64_t *other);
  void add(ExactSum other);
  /// Adds the squares of `elements` floats, bf16s or f16s, in groups of 64 from the first on; the last group
  /// may be shorter.
  void addSquares(const float *values, int64_t elements);
  void addSquares(const uint16_t *values, int64_t elements) { addConverted(values, elements); }
  void addSquares(const _Float16 *values, int64_t elements) { addConverted(values, elements); }
  /// Brings digits into [0, 2^32), so that 2^31 of them may be added.
  void normalize();
  /// The value, rounded once to nearest even.
  double value() const;

private:
  template <typename Narrow> void addConverted(const Narrow *values, int64_t elements);

  uint32_t pending = 0; ///< additions since the last normalization
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_EXACTSUM_H
