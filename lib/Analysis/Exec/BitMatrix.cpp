//===- BitMatrix.cpp - a relation of few things to each other -------------===//

#include "BitMatrix.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <array>

using namespace dsopt;

BitMatrix::BitMatrix(size_t size) : words(llvm::divideCeil(size, kBits)), bits(words * kBits * words) {}

size_t BitMatrix::count(size_t row) const {
  size_t sum = 0;
  for (uint64_t word : getRow(row))
    sum += llvm::popcount(word);
  return sum;
}

/// Mirrors a square of bits by halves, quarters and so on: those of a pair change places across the diagonal.
static void transpose(std::array<uint64_t, 64> &square) {
  uint64_t low = 0xffffffff;
  for (unsigned width = 32; width; width /= 2, low ^= low << width)
    for (unsigned row = 0; row < 64; row = (row + width + 1) & ~width) {
      uint64_t moved = (square[row] >> width ^ square[row + width]) & low;
      square[row] ^= moved << width;
      square[row + width] ^= moved;
    }
}

void BitMatrix::makeSymmetric() {
  // Square by square: bit by bit it would be the better part of the time that packing takes.
  std::array<uint64_t, kBits> square;
  for (size_t band = 0; band < words; ++band)
    for (size_t word = 0; word <= band; ++word) {
      for (size_t row = 0; row < kBits; ++row)
        square[row] = wordOf(word * kBits + row, band);
      transpose(square);
      for (size_t row = 0; row < kBits; ++row)
        square[row] = wordOf(band * kBits + row, word) |= square[row];
      transpose(square);
      for (size_t row = 0; row < kBits; ++row)
        wordOf(word * kBits + row, band) |= square[row];
    }
}
