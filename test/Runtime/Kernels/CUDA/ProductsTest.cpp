//===- ProductsTest.cpp - products on a device: right, and parts as the whole =//

#include "ProductsFixture.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace dsopt::runtime::cuda;

namespace {
constexpr int64_t kTypes[][2] = {{DSOPT_F32, DSOPT_F32}, {DSOPT_BF16, DSOPT_BF16}, {DSOPT_BF16, DSOPT_F32},
                                 {DSOPT_F16, DSOPT_F16}, {DSOPT_F16, DSOPT_F32},   {DSOPT_F64, DSOPT_F64}};

/// Random values with all of their bits, between 2^-6 and 2: their sums are others in another order.
Elements randomElements(int64_t type, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Elements made(type, count);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    double value =
        std::ldexp(1 + static_cast<double>(bits >> 12) * 0x1p-52, -static_cast<int>(bits >> 4 & 7));
    made.set(i, bits & 1 ? -value : value);
  }
  return made;
}

/// Elements that matrices of a batch take.
int64_t extentOf(const dsopt_gemm &p, const int64_t *strides, int64_t lines, int64_t leading) {
  int64_t last = lines * leading;
  for (int d = 0; d < DSOPT_BATCH_RANK; ++d)
    last += (p.batch[d] - 1) * strides[d];
  return last;
}

/// What a product should be; elements that are none of its stay as they are.
Elements expected(const dsopt_gemm &p, const Elements &a, const Elements &b, const Elements &before,
                  bool accumulate) {
  Elements made = before;
  int64_t count = p.batch[0] * p.batch[1] * p.batch[2] * p.batch[3];
  for (int64_t item = 0; item < count; ++item) {
    int64_t atA = 0, atB = 0, atC = 0, rest = item;
    for (int d = DSOPT_BATCH_RANK; d-- > 0; rest /= p.batch[d]) {
      atA += rest % p.batch[d] * p.stride_a[d];
      atB += rest % p.batch[d] * p.stride_b[d];
      atC += rest % p.batch[d] * p.stride_c[d];
    }
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = accumulate ? before.get(atC + i * p.ldc + j) : 0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += a.get(atA + (p.transpose_a ? l * p.lda + i : i * p.lda + l)) *
                 b.get(atB + (p.transpose_b ? j * p.ldb + l : l * p.ldb + j));
        made.set(atC + i * p.ldc + j, sum);
      }
  }
  return made;
}

void expectNear(const Elements &found, const Elements &wanted, int64_t k, const std::string &what) {
  for (int64_t i = 0; i < static_cast<int64_t>(found.bytes.size()) / bytesOfElement(found.type); ++i) {
    double relative = found.type == DSOPT_BF16  ? 1.0 / 128
                      : found.type == DSOPT_F16 ? 1.0 / 1024
                      : found.type == DSOPT_F64 ? 1e-13
                                                : 1e-5;
    ASSERT_NEAR(found.get(i), wanted.get(i), relative * (std::abs(wanted.get(i)) + std::sqrt(k)))
        << what << " at " << i;
  }
}

std::string describe(const dsopt_gemm &p, bool accumulate) {
  std::string text;
  for (int64_t value : {p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.lda, p.ldb, p.ldc, p.type_ab, p.type_c,
                        p.batch[0], p.batch[1], p.batch[2], p.batch[3]})
    text += std::to_string(value) + " ";
  return text + (accumulate ? "added" : "stored");
}

struct ProductsRun : ProductsTest {
  /// The result of a product, in a place where `before` is.
  Elements multiply(const dsopt_gemm &p, const Elements &a, const Elements &b, const Elements &before,
                    bool accumulate) {
    Buffer onA(a, stream), onB(b, stream), onC(before, stream);
    int64_t bytes = workspaceBytes(p);
    Buffer workspace(std::max<int64_t>(bytes, 1));
    products.multiply(stream, p, onA.at(), onB.at(), onC.at(), accumulate, bytes ? workspace.at() : nullptr);
    Elements result(p.type_c, static_cast<int64_t>(before.bytes.size()) / bytesOfElement(p.type_c));
    onC.read(result, stream);
    return result;
  }

  void expectRight(const dsopt_gemm &p, bool accumulate) {
    Elements a = randomElements(p.type_ab, extentOf(p, p.stride_a, p.transpose_a ? p.k : p.m, p.lda), 1),
             b = randomElements(p.type_ab, extentOf(p, p.stride_b, p.transpose_b ? p.n : p.k, p.ldb), 2),
             before = randomElements(p.type_c, extentOf(p, p.stride_c, p.m, p.ldc), 3);
    expectNear(multiply(p, a, b, before, accumulate), expected(p, a, b, before, accumulate), p.k,
               describe(p, accumulate));
  }
};
} // namespace

TEST_F(ProductsRun, RightForAllTypesTransposesAndShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},    {5, 7, 3},    {33, 20, 17},  {64, 96, 128},
                               {70, 130, 8}, {1, 257, 96}, {96, 1, 1000}, {2, 300, 255}};
  for (auto [typeAB, typeC] : kTypes)
    for (auto [m, n, k] : shapes)
      for (int mode = 0; mode < 8; ++mode) {
        dsopt_gemm p = denseProduct(m, n, k, mode & 1, mode >> 1 & 1, typeAB, typeC);
        expectRight(p, mode & 4);
        // Lines further apart.
        p.lda += 8, p.ldb += 3, p.ldc += 16;
        expectRight(p, mode & 4);
        if (HasFatalFailure())
          return;
      }
}

TEST_F(ProductsRun, RightForBatches) {
  std::mt19937_64 random(7);
  auto draw = [&](int64_t below) { return static_cast<int64_t>(random() % below); };
  for (int round = 0; round < 200; ++round) {
    auto [typeAB, typeC] = kTypes[draw(std::size(kTypes))];
    dsopt_gemm p = denseProduct(1 + draw(20), 1 + draw(20), 1 + draw(40), draw(2), draw(2), typeAB, typeC);
    // Batches lie one in the other, some within a line as heads do; some operands are there once for all.
    int64_t *leading[] = {&p.lda, &p.ldb, &p.ldc}, *strides[] = {p.stride_a, p.stride_b, p.stride_c};
    const int64_t lines[] = {p.transpose_a ? p.k : p.m, p.transpose_b ? p.n : p.k, p.m};
    for (int d = 0; d < DSOPT_BATCH_RANK; ++d)
      p.batch[d] = draw(3) ? 1 : 1 + draw(4);
    for (int operand = 0; operand < 3; ++operand) {
      int64_t inLine = draw(2) ? p.batch[3] : 1, width = *leading[operand];
      *leading[operand] = width * inLine + draw(2) * 8;
      int64_t next = lines[operand] * *leading[operand];
      for (int d = DSOPT_BATCH_RANK; d-- > 0;) {
        if (d == 3 && inLine > 1) {
          strides[operand][d] = width;
          continue;
        }
        strides[operand][d] = operand < 2 && draw(4) == 0 ? 0 : next;
        next *= strides[operand][d] ? p.batch[d] : 1;
        next += draw(2) * 16;
      }
    }
    expectRight(p, draw(2));
    if (HasFatalFailure())
      return;
  }
}

TEST_F(ProductsRun, RightForLongContractions) {
  for (auto [typeAB, typeC] : kTypes)
    for (int mode = 0; mode < 8; ++mode) {
      dsopt_gemm p = denseProduct(9, 24, 4608, mode & 1, mode >> 1 & 1, typeAB, typeC);
      bool rounds = typeC == DSOPT_BF16 || typeC == DSOPT_F16;
      EXPECT_EQ(workspaceBytes(p), rounds ? 9 * 24 * 4 : 0);
      expectRight(p, mode & 4);
      p.batch[2] = 2, p.batch[3] = 3;
      p.stride_a[3] = p.m * p.k, p.stride_b[2] = p.n * p.k;
      p.stride_c[3] = p.m * p.n, p.stride_c[2] = 3 * p.stride_c[3];
      expectRight(p, mode & 4);
      if (HasFatalFailure())
        return;
    }
}

TEST_F(ProductsRun, SumsAreRoundedInPieces) {
  // 256 rows of sums at a time.
  for (int64_t type : {DSOPT_BF16, DSOPT_F16}) {
    dsopt_gemm p = denseProduct(300, 8, 4096, 0, 0, type, type);
    p.ldc = 32768;
    EXPECT_EQ(workspaceBytes(p), INT64_C(256) * 32768 * 4);
    Elements a = randomElements(type, p.m * p.k, 1), b = randomElements(type, p.k * p.n, 2),
             before = randomElements(type, p.m * p.ldc, 3);
    dsopt_gemm close = p;
    close.ldc = 8;
    Elements pieces = multiply(p, a, b, before, false),
             whole = multiply(close, a, b, Elements(type, p.m * 8), false);
    for (int64_t row = 0; row < p.m; ++row)
      ASSERT_EQ(std::memcmp(&pieces.bytes[row * p.ldc * 2], &whole.bytes[row * 8 * 2], 16), 0) << row;
    EXPECT_EQ(pieces.get(8), before.get(8));
  }
}

TEST_F(ProductsRun, RightAtAnyPlace) {
  // The places of a program's values are multiples of 64 bytes, those of its views of an element.
  for (auto [typeAB, typeC] : kTypes)
    for (int64_t shift : {1, 2, 3, 4, 8}) {
      dsopt_gemm p = denseProduct(64, 72, 64, 0, 1, typeAB, typeC);
      int64_t size = bytesOfElement(typeAB), resultSize = bytesOfElement(typeC);
      Elements a = randomElements(typeAB, 64 * 64, 1), b = randomElements(typeAB, 64 * 72, 2),
               before(typeC, 64 * 72), found = before;
      Buffer all((a.bytes.size() + b.bytes.size() + before.bytes.size()) + 4096);
      char *ofA = all.at(shift * size), *ofB = ofA + a.bytes.size() + 256 * size,
           *ofC = all.at(a.bytes.size() + b.bytes.size() + 2048 + shift * resultSize);
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(ofA), a.bytes.data(), a.bytes.size(), stream);
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(ofB), b.bytes.data(), b.bytes.size(), stream);
      products.multiply(stream, p, ofA, ofB, ofC, false, nullptr);
      DSOPT_CUDA(cuMemcpyDtoHAsync_v2, found.bytes.data(), addressOf(ofC), found.bytes.size(), stream);
      stream.synchronize();
      expectNear(found, expected(p, a, b, before, false), p.k, describe(p, false));
    }
}

/// A product in parts along dimension `cut` (0: m, 1: n, 2: k), each of DSOPT_GEMM_CHUNK.
static Elements inParts(Products &products, StreamHandle stream, const dsopt_gemm &whole, int cut,
                        const Elements &a, const Elements &b) {
  int64_t extents[] = {whole.m, whole.n, whole.k}, size = bytesOfElement(whole.type_ab);
  int64_t resultSize = bytesOfElement(whole.type_c);
  Elements c(whole.type_c, whole.m * whole.n);
  Buffer onA(a, stream), onB(b, stream), result(whole.m * whole.n * resultSize);
  std::vector<Buffer *> sums;
  for (int64_t first = 0; first < extents[cut]; first += DSOPT_GEMM_CHUNK) {
    int64_t count = std::min(DSOPT_GEMM_CHUNK, extents[cut] - first);
    dsopt_gemm_part part = {whole, whole.m, whole.n, whole.k};
    dsopt_gemm &p = part.product;
    (cut == 0 ? p.m : cut == 1 ? p.n : p.k) = count;
    int64_t atA = cut == 0   ? first * (whole.transpose_a ? 1 : whole.lda)
                  : cut == 2 ? first * (whole.transpose_a ? whole.lda : 1)
                             : 0;
    int64_t atB = cut == 1   ? first * (whole.transpose_b ? whole.ldb : 1)
                  : cut == 2 ? first * (whole.transpose_b ? 1 : whole.ldb)
                             : 0;
    if (cut == 1)
      p.ldc = count + (whole.ldc - count) % DSOPT_GEMM_ALIGNMENT;
    bool isLast = first + count == extents[cut];
    p.type_c = cut == 2 && !isLast ? int64_t(DSOPT_F32) : whole.type_c;
    Buffer workspace(std::max<int64_t>(workspaceBytes(part), 1)),
        some(p.m * p.ldc * bytesOfElement(p.type_c));
    const float *addend = sums.empty() ? nullptr : reinterpret_cast<const float *>(sums.back()->at());
    char *to = some.at();
    if (cut == 2) {
      sums.push_back(new Buffer(p.m * p.ldc * 4));
      to = isLast ? result.at() : sums.back()->at();
    }
    products.multiplyPart(stream, part, onA.at(atA * size), onB.at(atB * size), addend, to, false,
                          workspaceBytes(part) ? workspace.at() : nullptr);
    auto copy = [&](int64_t to, int64_t from, int64_t elements) {
      DSOPT_CUDA(cuMemcpyDtoDAsync_v2, addressOf(result.at(to * resultSize)),
                 addressOf(some.at(from * resultSize)), static_cast<size_t>(elements * resultSize), stream);
    };
    if (cut == 0)
      copy(first * whole.ldc, 0, count * whole.ldc);
    for (int64_t row = 0; cut == 1 && row < p.m; ++row)
      copy(row * whole.ldc + first, row * p.ldc, count);
  }
  result.read(c, stream);
  for (Buffer *one : sums)
    delete one;
  return c;
}

TEST_F(ProductsRun, PartsHaveTheBitsOfTheWhole) {
  const int64_t others[][2] = {{1, 1}, {1, 33}, {2, 33}, {40, 9}, {136, 200}};
  for (int64_t extent : {4608, 4097})
    for (auto [first, second] : others)
      for (int cut = 0; cut < 3; ++cut)
        for (int mode = 0; mode < 12; ++mode) {
          auto [typeAB, typeC] = kTypes[mode >> 2];
          int64_t m = cut == 0 ? extent : first,
                  n = cut == 1   ? extent
                      : cut == 0 ? first
                                 : second,
                  k = cut == 2 ? extent : second;
          dsopt_gemm p = denseProduct(m, n, k, mode & 1, mode >> 1 & 1, typeAB, typeC);
          Elements a = randomElements(typeAB, m * k, 1), b = randomElements(typeAB, k * n, 2);
          Elements whole = multiply(p, a, b, Elements(typeC, m * n), false);
          ASSERT_TRUE(inParts(products, stream, p, cut, a, b).bytes == whole.bytes)
              << describe(p, false) << " cut along " << cut;
        }
}

TEST_F(ProductsRun, SameBitsWhereverMatricesLie) {
  // Alone, in a batch, with lines further apart: one algorithm, if the alignment is the same.
  for (auto [typeAB, typeC] : kTypes) {
    dsopt_gemm p = denseProduct(64, 64, 512, 0, 1, typeAB, typeC), apart = p;
    Elements a = randomElements(typeAB, 64 * 512, 1), b = randomElements(typeAB, 64 * 512, 2),
             none(typeC, 64 * 64);
    apart.lda += 64, apart.ldb += 128, apart.ldc += 64;
    Elements wideA(typeAB, 64 * apart.lda), wideB(typeAB, 64 * apart.ldb), wideC(typeC, 64 * apart.ldc);
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t l = 0; l < 512; ++l) {
        wideA.set(i * apart.lda + l, a.get(i * 512 + l));
        wideB.set(i * apart.ldb + l, b.get(i * 512 + l));
      }
    Elements one = multiply(p, a, b, none, false), other = multiply(apart, wideA, wideB, wideC, false);
    for (int64_t i = 0; i < 64 * 64; ++i)
      ASSERT_EQ(one.get(i), other.get(i / 64 * apart.ldc + i % 64));
  }
}

TEST_F(ProductsRun, SingleLinesTakeTheAlgorithmOfTheShape) {
  // How far it is to a line that there is not, or from a part's line to what is not its own, says nothing.
  for (auto [typeAB, typeC] : kTypes)
    for (int64_t k : {37, 4099})
      for (int mode = 0; mode < 4; ++mode) {
        dsopt_gemm p = denseProduct(1, 72, k, mode & 1, mode >> 1, typeAB, typeC), odd = p;
        Elements a = randomElements(typeAB, k, 1), b = randomElements(typeAB, 72 * k, 2), none(typeC, 72);
        Elements one = multiply(p, a, b, none, false);
        odd.lda += p.transpose_a ? 0 : 5, odd.ldc += 3;
        Elements other = multiply(odd, a, b, none, false);
        ASSERT_TRUE(one.bytes == other.bytes) << describe(odd, false);
        odd.lda += p.transpose_a ? 0 : 3, odd.ldc += 1;
        ASSERT_TRUE(multiply(odd, a, b, none, false).bytes == one.bytes) << describe(odd, false);
      }
}

TEST_F(ProductsRun, RoundsToTf32WhereItMay) {
  Products rounding(device, true);
  dsopt_gemm p = denseProduct(24, 40, 4200, 0, 1, DSOPT_F32, DSOPT_F32);
  Elements a = randomElements(DSOPT_F32, 24 * 4200, 1), b = randomElements(DSOPT_F32, 40 * 4200, 2);
  Buffer onA(a, stream), onB(b, stream), onC(24 * 40 * 4);
  Elements exact = multiply(p, a, b, Elements(DSOPT_F32, 24 * 40), false), found = exact;
  rounding.multiply(stream, p, onA.at(), onB.at(), onC.at(), false, nullptr);
  onC.read(found, stream);
  ASSERT_FALSE(found.bytes == exact.bytes);
  for (int64_t i = 0; i < 24 * 40; ++i)
    ASSERT_NEAR(found.get(i), exact.get(i), 1e-3 * std::sqrt(4200)) << i;
  // Parts round as the whole does; other types as ever.
  ASSERT_TRUE(inParts(rounding, stream, p, 2, a, b).bytes == found.bytes);
  for (int types : {1, 3}) {
    auto [typeAB, typeC] = kTypes[types];
    p = denseProduct(24, 40, 64, 0, 1, typeAB, typeC);
    Elements left = randomElements(typeAB, 24 * 64, 1), right = randomElements(typeAB, 40 * 64, 2);
    Buffer onLeft(left, stream), onRight(right, stream), to(24 * 40 * 8);
    Elements same = multiply(p, left, right, Elements(typeC, 24 * 40), false), other = same;
    rounding.multiply(stream, p, onLeft.at(), onRight.at(), to.at(), false, nullptr);
    to.read(other, stream);
    ASSERT_TRUE(other.bytes == same.bytes);
  }
}
