//===- AttentionMatrices.h - attention's products in 16 bits ----*- C++ -*-===//
//
// By mma.sync, of bf16 or f16: a block of 4 warps has 64 rows, each warp 16 of them. Operands lie in
// shared memory as they do in the tensors, zeros past the ends, with rows 8 elements
// further apart so that eight of them lie in different banks.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONMATRICES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONMATRICES_H

#include "AttentionTiles.h"

inline constexpr int kMatrixThreads = 128, kWarpRows = 16;

/// `rows` rows of `size` elements in shared memory.
template <int rows, int size> struct Matrix {
  static constexpr int kPitch = size + 8;
  alignas(16) uint16_t values[rows * kPitch];
};

DEVICE uint32_t sharedAddress(const void *p) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>((const __attribute__((address_space(3))) void *)p));
}

/// Rows from `first` on.
template <int rows, int size, typename T>
DEVICE void fill(Matrix<rows, size> &to, const Rows<const T> &from, int64_t first, int64_t width) {
  constexpr int kPiece = 8, kPieces = size / kPiece;
  bool isAligned =
      ((reinterpret_cast<uint64_t>(from.values) | static_cast<uint64_t>(from.stride * 2)) & 15) == 0;
#pragma unroll 4
  for (int i = threadX(); i < rows * kPieces; i += kMatrixThreads) {
    int row = i / kPieces, at = i % kPieces * kPiece;
    const T *source = from.values + (first + row) * from.stride + at;
    Word4 words = {};
    if (first + row < from.count && at < width) {
      if (isAligned && at + kPiece <= width) {
        words = *reinterpret_cast<const Word4 *>(source);
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j)
          if (at + j < width)
            words[j / 2] |= static_cast<uint32_t>(__builtin_bit_cast(uint16_t, source[j])) << j % 2 * 16;
      }
    }
    *reinterpret_cast<Word4 *>(to.values + row * to.kPitch + at) = words;
  }
}

typedef uint32_t Left[4];
typedef float Sums[4]; ///< of rows lane / 4 and 8 below it, columns lane % 4 * 2 and the next

/// 16 rows of an operand from `row`, 16 of what is summed from `at` on.
template <int rows, int size> DEVICE void loadLeft(Left &r, const Matrix<rows, size> &from, int row, int at) {
  const void *p = from.values + (row + laneX() % 16) * from.kPitch + at + laneX() / 16 * 8;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p))
               : "memory");
}
/// Two right operands of 8 columns, which are rows of the matrix from `row` on.
template <int rows, int size>
DEVICE void loadColumns(uint32_t (&r)[4], const Matrix<rows, size> &from, int row, int at) {
  const void *p =
      from.values + (row + laneX() % 8 + laneX() / 16 * 8) * from.kPitch + at + laneX() / 8 % 2 * 8;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p))
               : "memory");
}
/// Two right operands of 8 columns from `at` on; the matrix' rows from `row` on are what is summed.
template <int rows, int size>
DEVICE void loadRows(uint32_t (&r)[4], const Matrix<rows, size> &from, int row, int at) {
  const void *p = from.values + (row + laneX() % 16) * from.kPitch + at + laneX() / 16 * 8;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p))
               : "memory");
}
#define MULTIPLY_ADD(T)                                                                                      \
  template <> DEVICE_MEMBER inline void multiplyAdd<T>(Sums & c, const Left &a, uint32_t b0, uint32_t b1) {  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #T "." #T ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "    \
                 "{%8,%9}, {%0,%1,%2,%3};"                                                                   \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                            \
  }
template <typename T> DEVICE void multiplyAdd(Sums &c, const Left &a, uint32_t b0, uint32_t b1);
MULTIPLY_ADD(bf16)
MULTIPLY_ADD(f16)

/// c += left * the transposed of `right`, of one step of 16 of what is summed.
template <typename T, int tiles, int rows, int size>
DEVICE void addScores(Sums (&c)[tiles], const Left &left, const Matrix<rows, size> &right, int at) {
#pragma unroll
  for (int tile = 0; tile < tiles; tile += 2) {
    uint32_t r[4];
    loadColumns(r, right, tile * 8, at);
    multiplyAdd<T>(c[tile], left, r[0], r[1]);
    multiplyAdd<T>(c[tile + 1], left, r[2], r[3]);
  }
}
/// c += weights * right: weights are rounded.
template <typename T, int tiles, int wide, int rows, int size>
DEVICE void addWeighted(Sums (&c)[wide], const Sums (&weights)[tiles], const Matrix<rows, size> &right) {
#pragma unroll
  for (int step = 0; step < tiles; step += 2) {
    const Sums &low = weights[step], &high = weights[step + 1];
    Left left = {pairOf<T>(low[0], low[1]), pairOf<T>(low[2], low[3]), pairOf<T>(high[0], high[1]),
                 pairOf<T>(high[2], high[3])};
#pragma unroll
    for (int tile = 0; tile < wide; tile += 2) {
      uint32_t r[4];
      loadRows(r, right, step * 8, tile * 8);
      multiplyAdd<T>(c[tile], left, r[0], r[1]);
      multiplyAdd<T>(c[tile + 1], left, r[2], r[3]);
    }
  }
}
template <int tiles> DEVICE void clear(Sums (&c)[tiles]) {
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      c[tile][i] = 0;
}

/// Which of a line of scores are read, and its mask: the scores that a lane has of one row, or of one column.
struct Line {
  int from, to;     ///< offsets from the line's first
  int64_t at, step; ///< of the mask
};
DEVICE int asOffset(int64_t value) {
  return static_cast<int>(most<int64_t>(-1, least<int64_t>(value, kTile)));
}
/// Of a row, from a column on.
DEVICE Line lineOfRow(const Scores &scores, int64_t row, int64_t column) {
  const dsopt_attention &d = scores.d;
  return {0, row < d.rows ? asOffset(scores.limit(row) - column) : 0,
          scores.maskBase + row * d.mask[2] + column * d.mask[3], d.mask[3]};
}
/// Of a column, from a row on.
DEVICE Line lineOfColumn(const Scores &scores, int64_t column, int64_t row) {
  const dsopt_attention &d = scores.d;
  return {d.causal ? asOffset(column - scores.begin - row) : 0,
          column < d.columns ? asOffset(d.rows - row) : 0,
          scores.maskBase + row * d.mask[2] + column * d.mask[3], d.mask[2]};
}
template <int tiles, typename Mask>
DEVICE void addMask(Sums (&s)[tiles], int half, float scale, const Mask *mask, const Line &line) {
#pragma unroll
  for (int i = 0; i < 2 * tiles; ++i) {
    int offset = i / 2 * 8 + i % 2;
    float added = offset >= line.from && offset < line.to ? widen(mask[offset * line.step]) : 0.0f;
    s[i / 2][2 * half + i % 2] = fma(s[i / 2][2 * half + i % 2], scale, added * kLog2E);
  }
}
/// The scores of a line in place of their products: those of a lane's upper or lower row of the sums.
template <int tiles> DEVICE void score(Sums (&s)[tiles], int half, const Scores &scores, Line line) {
  float scale = scores.scale;
  // Multiples of it would be kept in registers from one tile to the next.
  asm volatile("" : "+l"(line.step));
  if (scores.mask && scores.d.mask_type == DSOPT_BF16) {
    addMask(s, half, scale, static_cast<const bf16 *>(scores.mask) + line.at, line);
  } else if (scores.mask && scores.d.mask_type == DSOPT_F16) {
    addMask(s, half, scale, static_cast<const f16 *>(scores.mask) + line.at, line);
  } else if (scores.mask) {
    addMask(s, half, scale, static_cast<const float *>(scores.mask) + line.at, line);
  } else {
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i)
      s[i / 2][2 * half + i % 2] *= scale;
  }
#pragma unroll
  for (int i = 0; i < 2 * tiles; ++i) {
    int offset = i / 2 * 8 + i % 2;
    if (offset < line.from || offset >= line.to)
      s[i / 2][2 * half + i % 2] = -infinity();
  }
}

/// Stores the warp's 16 rows from `first` on, times a factor for each of the lane's two, beside what is kept.
template <int tiles, typename T>
DEVICE void storeRows(const Sums (&c)[tiles], const float (&factors)[2], const float (&kept)[2],
                      const Target<T> &to, int64_t first) {
  bool isPaired = !to.wide && !to.previous &&
                  ((reinterpret_cast<uint64_t>(to.narrow) | static_cast<uint64_t>(to.stride * 2)) & 3) == 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int64_t row = first + laneX() / 4 + half * 8;
    if (row >= to.count)
      break;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      int64_t at = tile * 8 + laneX() % 4 * 2;
      float low = c[tile][2 * half] * factors[half], high = c[tile][2 * half + 1] * factors[half];
      if (isPaired && at + 1 < to.width) {
        *reinterpret_cast<uint32_t *>(to.narrow + row * to.stride + at) = pairOf<T>(low, high);
      } else {
        if (at < to.width)
          to.put(low, kept[half], row, at);
        if (at + 1 < to.width)
          to.put(high, kept[half], row, at + 1);
      }
    }
  }
}

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONMATRICES_H
