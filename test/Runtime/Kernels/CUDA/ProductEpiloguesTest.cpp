//===- ProductEpiloguesTest.cpp - products that go on before they round ---===//

#include "ProductsFixture.h"

#include <cmath>
#include <random>

using namespace dsopt::runtime::cuda;

namespace {
constexpr int64_t kTypes[] = {DSOPT_F32, DSOPT_BF16, DSOPT_F16};

double relativeOf(int64_t type) {
  return type == DSOPT_BF16 ? 1.0 / 128 : type == DSOPT_F16 ? 1.0 / 1024 : 1e-5;
}

Elements randomElements(int64_t type, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Elements made(type, count);
  for (int64_t i = 0; i < count; ++i)
    made.set(i, normal(random));
  return made;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}
/// By differences: what is tested has another formula.
double geluSlope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

struct EpiloguesTest : ProductsTest {
  /// Matrices a and b, what an epilogue is given, and sums of a and b by double precision.
  struct Case {
    dsopt_gemm_epilogue product;
    Elements a, b, given;
    std::vector<double> sums;
  };

  Case make(int64_t kind, int64_t m, int64_t n, int64_t k, int64_t ta, int64_t tb, int64_t type) {
    bool isGradient = kind == DSOPT_EPILOGUE_GELU_GRAD;
    Case made = {{denseProduct(m, n, k, ta, tb, type, type), kind},
                 randomElements(type, m * k, 1),
                 randomElements(type, k * n, 2),
                 randomElements(type, isGradient ? m * n : n, 3),
                 std::vector<double>(m * n)};
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l)
          made.sums[i * n + j] +=
              made.a.get(ta ? l * m + i : i * k + l) * made.b.get(tb ? j * k + l : l * n + j);
    return made;
  }

  /// The result, and the operand that GELU had where `keeps`.
  std::pair<Elements, Elements> run(const Case &one, bool keeps) {
    const dsopt_gemm &p = one.product.product;
    Buffer a(one.a, stream), b(one.b, stream), given(one.given, stream);
    Elements c(p.type_c, (p.m - 1) * p.ldc + p.n), kept(p.type_c, p.m * p.n);
    Buffer onC(c, stream), onKept(kept, stream);
    products.multiplyEpilogue(stream, one.product, a.at(), b.at(), given.at(), keeps ? onKept.at() : nullptr,
                              onC.at());
    onC.read(c, stream);
    onKept.read(kept, stream);
    return {c, kept};
  }

  void expectNear(double found, double wanted, int64_t type, int64_t k, const char *what) {
    ASSERT_NEAR(found, wanted, relativeOf(type) * (std::abs(wanted) + std::sqrt(static_cast<double>(k))))
        << what << " of type " << type;
  }

  std::string failureOfEpilogue(dsopt_gemm p, int64_t kind, int64_t at = 0) {
    Buffer place(1 << 16);
    return failureOf([&] {
      products.multiplyEpilogue(stream, {p, kind}, place.at(), place.at(1 << 12), place.at((1 << 13) + at),
                                nullptr, place.at(1 << 14));
    });
  }
};

constexpr int64_t kShapes[][3] = {{1, 8, 8}, {33, 24, 16}, {64, 96, 128}, {70, 136, 8}};
} // namespace

TEST_F(EpiloguesTest, Bias) {
  for (int64_t type : kTypes)
    for (auto [m, n, k] : kShapes)
      for (int mode = 0; mode < 4; ++mode) {
        // Lines further apart; of all matrices they are multiples of 8.
        Case one = make(DSOPT_EPILOGUE_BIAS, m, n, k, m % 8 == 0 && mode & 1, mode >> 1, type);
        one.product.product.ldc += 16;
        Elements found = run(one, false).first;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            expectNear(found.get(i * one.product.product.ldc + j), one.sums[i * n + j] + one.given.get(j),
                       type, k, "bias");
      }
}

TEST_F(EpiloguesTest, GeluAndItsOperand) {
  for (int64_t type : kTypes)
    for (auto [m, n, k] : kShapes)
      for (bool keeps : {false, true}) {
        Case one = make(DSOPT_EPILOGUE_BIAS_GELU, m, n, k, 0, keeps, type);
        auto [found, kept] = run(one, keeps);
        for (int64_t at = 0; at < m * n; ++at) {
          double x = one.sums[at] + one.given.get(at % n);
          expectNear(found.get(at), gelu(x), type, k, "gelu");
          expectNear(kept.get(at), keeps ? x : 0, type, k, "gelu's operand");
        }
      }
}

TEST_F(EpiloguesTest, GeluGradient) {
  for (int64_t type : kTypes)
    for (auto [m, n, k] : kShapes)
      for (int tb = 0; tb < 2; ++tb) {
        Case one = make(DSOPT_EPILOGUE_GELU_GRAD, m, n, k, 0, tb, type);
        Elements found = run(one, false).first;
        for (int64_t at = 0; at < m * n; ++at)
          expectNear(found.get(at), one.sums[at] * geluSlope(one.given.get(at)), type, k, "gelu's gradient");
      }
}

TEST_F(EpiloguesTest, WhatTheyTakeChangesFromCallToCall) {
  // One prepared call for both.
  Case one = make(DSOPT_EPILOGUE_BIAS, 8, 8, 4, 0, 0, DSOPT_F32), other = one;
  other.given = randomElements(DSOPT_F32, 8, 9);
  Elements first = run(one, false).first, second = run(other, false).first;
  for (int64_t at = 0; at < 64; ++at)
    expectNear(second.get(at) - first.get(at), other.given.get(at % 8) - one.given.get(at % 8), DSOPT_F32, 4,
               "another bias");
}

TEST_F(EpiloguesTest, WhatCannotBe) {
  if (!findInSoftLibrary("softProductsFault"))
    GTEST_SKIP() << "not the software device";
  dsopt_gemm p = denseProduct(8, 8, 4, 0, 0, DSOPT_F32, DSOPT_F32);
  EXPECT_EQ(failureOfEpilogue(p, DSOPT_EPILOGUE_BIAS, 4),
            "the product 8x8x4 NN with bias (f32 to f32, aligned to 16, 16 and 16 bytes) has a bias or an "
            "activation's operand at an address that is no multiple of 16");
  dsopt_gemm several = p;
  several.batch[0] = 2;
  EXPECT_NE(
      failureOfEpilogue(several, DSOPT_EPILOGUE_BIAS).find("has an epilogue, expected one of two matrices"),
      std::string::npos);
  EXPECT_NE(failureOfEpilogue(denseProduct(8, 8, 4096, 0, 0, DSOPT_F32, DSOPT_F32), DSOPT_EPILOGUE_BIAS)
                .find("expected one of two matrices in one piece"),
            std::string::npos);
  // The library's own refusals, before and after the choice.
  EXPECT_EQ(failureOfEpilogue(denseProduct(8, 12, 4, 0, 0, DSOPT_BF16, DSOPT_BF16), DSOPT_EPILOGUE_GELU_GRAD),
            "cuBLASLt 13.1.0 has no algorithm for the product 8x12x4 NN with gelu's gradient (bf16 to bf16, "
            "aligned to 8, 8 and 8 bytes) on sm_90: CUBLAS_STATUS_INVALID_VALUE (an unsupported value or "
            "parameter was passed to the function)");
  p.lda = INT64_C(1) << 32;
  EXPECT_EQ(
      failureOfEpilogue(p, DSOPT_EPILOGUE_BIAS_GELU),
      "cuBLASLt 13.1.0 refuses algorithm 66 (tile 15, stages 0, swizzle 0, custom option 0, inner shape 0, "
      "cluster shape 0) for the product 8x8x4 NN with bias and gelu (f32 to f32, aligned to 16, 16 and 16 "
      "bytes) on sm_90: CUBLAS_STATUS_NOT_SUPPORTED (the functionality requested is not supported)");
}
