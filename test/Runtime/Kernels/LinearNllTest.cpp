//===- LinearNllTest.cpp - the tiled loss against plain sums ---------------===//

#include "Kernels/CPU/Runtime.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace dsopt::runtime;

static std::vector<float> randomFloats(int64_t count, int seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

TEST(LinearNll, ChunkFollowsFromTheShape) {
  EXPECT_EQ(dsopt_linear_nll_chunk(100, 1000), 100);
  EXPECT_EQ(dsopt_linear_nll_chunk(1024, 50257), 256);
  EXPECT_EQ(dsopt_linear_nll_chunk(300, 128000), 192);
  EXPECT_EQ(dsopt_linear_nll_chunk(65536, 1000), 16384);
}

TEST(LinearNll, RightAndSameBitsWithAnyThreads) {
  struct Shape {
    int64_t rows, depth, classes;
  };
  for (Shape s :
       {Shape{1, 1, 1}, Shape{15, 17, 15}, Shape{17, 3, 1023}, Shape{5, 64, 17}, Shape{260, 8, 66000}})
    for (int kind = 0; kind < 4; ++kind) {
      bool transposed = kind & 1, hasBias = kind & 2;
      if (s.rows == 260 && kind != 3)
        continue;
      dsopt_linear_nll d = {s.rows, s.depth, s.classes, transposed, -100, 8};
      std::vector<float> x = randomFloats(s.rows * s.depth, 1, 1),
                         w = randomFloats(s.classes * s.depth, 2, 1);
      std::vector<float> bias = randomFloats(s.classes, 3, 1), grad = randomFloats(s.rows, 4, 0.1f);
      std::vector<float> start = randomFloats(s.classes * s.depth, 5, 1),
                         startBias = randomFloats(s.classes, 6, 1);
      std::vector<int64_t> labels(s.rows);
      for (int64_t i = 0; i < s.rows; ++i)
        labels[i] = i % 5 == 3 ? -100 : i * 7919 % s.classes;
      auto weight = [&](int64_t c, int64_t k) { return w[transposed ? c * s.depth + k : k * s.classes + c]; };

      std::vector<float> first[4];
      for (int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads, 0, prepareThread);
        dsopt_rt rt;
        rt.pool = &pool;
        std::vector<float> losses(s.rows, NAN), dx(s.rows * s.depth, NAN), dw = start, db = startBias;
        std::vector<float> workspace(dsopt_linear_nll_chunk(s.rows, s.classes) * s.classes);
        dsopt_rt_linear_nll(&rt, &d, x.data(), w.data(), hasBias ? bias.data() : nullptr, labels.data(),
                            grad.data(), losses.data(), dx.data(), dw.data(), hasBias ? db.data() : nullptr,
                            workspace.data(), 1, 0);
        if (threads > 1) {
          ASSERT_EQ(losses, first[0]);
          ASSERT_EQ(dx, first[1]);
          ASSERT_EQ(dw, first[2]);
          ASSERT_EQ(db, first[3]);
          continue;
        }
        std::vector<double> expectedW(start.begin(), start.end()), expectedB(s.classes);
        for (int64_t i = 0; i < s.rows; ++i) {
          std::vector<double> logits(s.classes);
          double sum = 0;
          for (int64_t c = 0; c < s.classes; ++c) {
            logits[c] = hasBias ? bias[c] : 0;
            for (int64_t k = 0; k < s.depth; ++k)
              logits[c] += double(x[i * s.depth + k]) * weight(c, k);
            sum += std::exp(logits[c]);
          }
          bool counts = labels[i] != -100;
          ASSERT_NEAR(losses[i], counts ? std::log(sum) - logits[labels[i]] : 0, 1e-4);
          std::vector<double> inputs(s.depth);
          for (int64_t c = 0; counts && c < s.classes; ++c) {
            double z = grad[i] * (std::exp(logits[c]) / sum - (c == labels[i]));
            expectedB[c] += z;
            for (int64_t k = 0; k < s.depth; ++k) {
              inputs[k] += z * weight(c, k);
              expectedW[transposed ? c * s.depth + k : k * s.classes + c] += z * x[i * s.depth + k];
            }
          }
          for (int64_t k = 0; k < s.depth; ++k)
            ASSERT_NEAR(dx[i * s.depth + k], inputs[k], 1e-4);
        }
        for (size_t i = 0; i < dw.size(); ++i)
          ASSERT_NEAR(dw[i], expectedW[i], 1e-4);
        for (int64_t c = 0; hasBias && c < s.classes; ++c)
          ASSERT_NEAR(db[c], expectedB[c], 1e-4);
        first[0] = losses, first[1] = dx, first[2] = dw, first[3] = db;
      }
    }
}

TEST(LinearNll, KeepsWhatIsNotFinite) {
  dsopt_linear_nll d = {3, 1, 40, 1, -100, 4};
  std::vector<float> x = {1, NAN, INFINITY}, w(40, 2), grad(3, 1), losses(3), dx(3), workspace(120);
  std::vector<int32_t> labels = {1, 2, 3};
  ThreadPool pool(1, 0, prepareThread);
  dsopt_rt rt;
  rt.pool = &pool;
  dsopt_rt_linear_nll(&rt, &d, x.data(), w.data(), nullptr, labels.data(), grad.data(), losses.data(),
                      dx.data(), nullptr, nullptr, workspace.data(), 0, 0);
  EXPECT_NEAR(losses[0], std::log(40.0), 1e-6);
  EXPECT_FALSE(std::isfinite(losses[1]));
  EXPECT_FALSE(std::isfinite(losses[2]));
}
