//===- BitMatrix.h - a relation of few things to each other -----*- C++ -*-===//
#ifndef DSOPT_LIB_ANALYSIS_EXEC_BITMATRIX_H
#define DSOPT_LIB_ANALYSIS_EXEC_BITMATRIX_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace dsopt {

/// A square of bits, one row for each of `size` things.
class BitMatrix {
public:
  explicit BitMatrix(size_t size);

  void set(size_t row, size_t column) { wordOf(row, column / kBits) |= bitOf(column); }
  void reset(size_t row, size_t column) { wordOf(row, column / kBits) &= ~bitOf(column); }
  bool test(size_t row, size_t column) const { return getRow(row)[column / kBits] & bitOf(column); }
  llvm::ArrayRef<uint64_t> getRow(size_t row) const { return llvm::ArrayRef(bits).slice(row * words, words); }
  /// Sets what another row of `size` bits has.
  void join(size_t row, llvm::ArrayRef<uint64_t> other) {
    for (size_t word = 0; word < words; ++word)
      wordOf(row, word) |= other[word];
  }
  size_t count(size_t row) const;
  /// Sets each bit whose mirror image is set.
  void makeSymmetric();

private:
  static constexpr size_t kBits = 64;
  static uint64_t bitOf(size_t column) { return uint64_t(1) << column % kBits; }
  uint64_t &wordOf(size_t row, size_t word) { return bits[row * words + word]; }

  size_t words;               ///< of a row
  std::vector<uint64_t> bits; ///< as many rows as columns: whole words
};

} // namespace dsopt

#endif // DSOPT_LIB_ANALYSIS_EXEC_BITMATRIX_H
