//===- LinearNllTest.cpp - the tiled loss against plain sums ---------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"
#include "LinearNllReference.h"
#include "RandomNumbers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace dsopt::runtime;

TEST(LinearNll, ChunkFollowsFromTheShape) {
  EXPECT_EQ(dsopt_linear_nll_chunk(100, 1000), 100);
  EXPECT_EQ(dsopt_linear_nll_chunk(1024, 50257), 256);
  EXPECT_EQ(dsopt_linear_nll_chunk(300, 128000), 192);
  EXPECT_EQ(dsopt_linear_nll_chunk(65536, 1000), 16384);
}

template <typename T> static std::vector<T> stored(const std::vector<float> &values) {
  std::vector<T> result(values.size());
  convert(values.data(), result.data(), values.size());
  return result;
}

static constexpr int64_t typeOf(float) { return DSOPT_F32; }
static constexpr int64_t typeOf(uint16_t) { return DSOPT_BF16; }
static constexpr int64_t typeOf(_Float16) { return DSOPT_F16; }

/// `T` is what inputs are stored as, `Sum` what the gradients of weight and bias are.
template <typename T, typename Sum>
static void rightAndSameBits(LinearNllShape s, bool transposed, bool hasBias) {
  constexpr int64_t type = typeOf(T()), typeSum = typeOf(Sum());
  dsopt_linear_nll d = {s.rows, s.depth, s.classes, transposed, -100, 8, type, typeSum, typeSum};
  auto x = stored<T>(randomNumbers(s.rows * s.depth, 1, 1)),
       w = stored<T>(randomNumbers(s.classes * s.depth, 2, 1)),
       bias = stored<T>(randomNumbers(s.classes, 3, 1));
  std::vector<float> grad = randomNumbers(s.rows, 4, 0.1f);
  auto start = stored<Sum>(randomNumbers(s.classes * s.depth, 5, 1));
  std::vector<int64_t> labels(s.rows);
  for (int64_t i = 0; i < s.rows; ++i)
    labels[i] = i % 5 == 3 ? -100 : i * 7919 % s.classes;
  int64_t chunk = dsopt_linear_nll_chunk(s.rows, s.classes), chunks = (s.rows + chunk - 1) / chunk;

  std::vector<float> firstLosses;
  std::vector<T> firstX;
  std::vector<Sum> firstW, firstB;
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads, 0, prepareThread);
    dsopt_rt rt;
    rt.pool = &pool;
    std::vector<float> losses(s.rows, NAN), workspace(chunk * s.classes);
    std::vector<T> dx(s.rows * s.depth, stored<T>({NAN})[0]);
    std::vector<Sum> dw = start, db(s.classes, stored<Sum>({NAN})[0]);
    dsopt_rt_linear_nll(&rt, &d, x.data(), w.data(), hasBias ? bias.data() : nullptr, labels.data(),
                        grad.data(), losses.data(), dx.data(), dw.data(), hasBias ? db.data() : nullptr,
                        workspace.data(), 1, 0, nullptr);
    if (threads > 1) {
      ASSERT_EQ(losses, firstLosses);
      ASSERT_EQ(dx, firstX);
      ASSERT_EQ(dw, firstW);
      ASSERT_TRUE(!hasBias || db == firstB);
      continue;
    }
    LinearNllReference r = referenceOf(s, transposed, x, w, hasBias ? &bias : nullptr, labels, grad);
    // Each term of a sum has the rounded gradient of a logit in it; then the result is rounded.
    auto near = [](double got, double expected, double size, bool narrow, int64_t roundings) {
      double terms = sizeof(T) == 2 ? size / 256 : 0,
             result = narrow ? roundings * (std::abs(expected) + size) / 256 : 0;
      EXPECT_NEAR(got, expected, 1e-4 + terms + result);
    };
    for (int64_t i = 0; i < s.rows; ++i)
      ASSERT_NEAR(losses[i], r.losses[i], 1e-4);
    for (size_t i = 0; i < dx.size(); ++i)
      near(widen(dx[i]), r.dx[i], r.sizeX[i], sizeof(T) == 2, 1);
    for (size_t i = 0; i < dw.size(); ++i)
      near(widen(dw[i]), widen(start[i]) + r.dw[i], r.sizeW[i], sizeof(Sum) == 2, chunks);
    for (int64_t c = 0; hasBias && c < s.classes; ++c)
      near(widen(db[c]), r.db[c], r.sizeB[c], sizeof(Sum) == 2, chunks);
    firstLosses = losses, firstX = dx, firstW = dw, firstB = db;
  }
}

template <typename T, typename Sum> static void rightInAllShapes() {
  for (LinearNllShape s : {LinearNllShape{1, 1, 1}, LinearNllShape{15, 17, 15}, LinearNllShape{17, 3, 1023},
                           LinearNllShape{5, 64, 17}, LinearNllShape{260, 8, 66000}})
    for (bool transposed : {false, true})
      for (bool hasBias : {false, true})
        if (s.rows != 260 || (transposed && hasBias))
          rightAndSameBits<T, Sum>(s, transposed, hasBias);
}

TEST(LinearNll, RightAndSameBitsWithAnyThreads) { rightInAllShapes<float, float>(); }

TEST(LinearNll, Bf16RightAndSameBitsWithAnyThreads) {
  rightInAllShapes<uint16_t, float>();
  rightInAllShapes<uint16_t, uint16_t>();
}

TEST(LinearNll, F16RightAndSameBitsWithAnyThreads) {
  rightInAllShapes<_Float16, float>();
  rightInAllShapes<_Float16, _Float16>();
}

TEST(LinearNll, KeepsWhatIsNotFinite) {
  dsopt_linear_nll d = {3, 1, 40, 1, -100, 4, DSOPT_F32, DSOPT_F32, DSOPT_F32};
  std::vector<float> x = {1, NAN, INFINITY}, w(40, 2), grad(3, 1), losses(3), dx(3), workspace(120);
  std::vector<int32_t> labels = {1, 2, 3};
  ThreadPool pool(1, 0, prepareThread);
  dsopt_rt rt;
  rt.pool = &pool;
  dsopt_rt_linear_nll(&rt, &d, x.data(), w.data(), nullptr, labels.data(), grad.data(), losses.data(),
                      dx.data(), nullptr, nullptr, workspace.data(), 0, 0, nullptr);
  EXPECT_NEAR(losses[0], std::log(40.0), 1e-6);
  EXPECT_FALSE(std::isfinite(losses[1]));
  EXPECT_FALSE(std::isfinite(losses[2]));
}
