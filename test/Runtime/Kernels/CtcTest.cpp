//===- CtcTest.cpp - the same bits whatever the threads --------------------===//

#include "Kernels/CPU/Runtime.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
struct Problem {
  dsopt_ctc d;
  std::vector<float> logs, grad;
  std::vector<int64_t> targets, inputs, lengths;

  Problem(int64_t frames, int64_t batch, int64_t classes, int64_t most, bool concatenated)
      : d{frames, batch, classes, most, concatenated, 0, 1}, logs(frames * batch * classes), grad(batch),
        inputs(batch), lengths(batch) {
    for (size_t i = 0; i < logs.size(); ++i)
      logs[i] = -0.1f - static_cast<float>(i * 31 % 97) / 20;
    int64_t sum = 0;
    for (int64_t n = 0; n < batch; ++n) {
      grad[n] = 1.0f / (n + 1);
      inputs[n] = frames - n % 3;
      lengths[n] = n % (most + 1);
      sum += lengths[n];
    }
    if (concatenated)
      d.targets = sum;
    targets.resize(concatenated ? sum : batch * most);
    for (size_t i = 0; i < targets.size(); ++i)
      targets[i] = 1 + i * 5 % (classes - 1);
  }

  std::pair<std::vector<float>, std::vector<float>> run(int threads) {
    ThreadPool pool(threads, 0);
    dsopt_rt rt;
    rt.pool = &pool;
    std::vector<float> losses(d.batch), gradient(logs.size());
    std::vector<char> scratch(dsopt_ctc_workspace(&d, 0)), more(dsopt_ctc_workspace(&d, 1));
    dsopt_rt_ctc(&rt, &d, logs.data(), targets.data(), inputs.data(), lengths.data(), scratch.data(),
                 losses.data());
    dsopt_rt_ctc_grad(&rt, &d, logs.data(), targets.data(), inputs.data(), lengths.data(), grad.data(),
                      more.data(), gradient.data());
    return {losses, gradient};
  }
};

TEST(Ctc, SameBitsWithAnyThreads) {
  for (bool concatenated : {false, true}) {
    Problem problem(23, 13, 11, 7, concatenated);
    auto first = problem.run(1);
    for (int threads : {2, 3, 8})
      ASSERT_EQ(problem.run(threads), first) << threads << " threads";
    for (float loss : first.first)
      ASSERT_TRUE(std::isfinite(loss));
  }
}

TEST(Ctc, SaysNothingOfWhatIsOutOfRange) {
  auto lossOf = [](int64_t input, int64_t length, int64_t target) {
    Problem problem(4, 2, 5, 3, false);
    problem.inputs[1] = input;
    problem.lengths[1] = length;
    problem.targets[3] = target;
    return problem.run(2).first[1];
  };
  EXPECT_TRUE(std::isfinite(lossOf(4, 3, 1)));
  for (auto [input, length, target] :
       {std::array<int64_t, 3>{5, 1, 1}, {-1, 1, 1}, {4, 4, 1}, {4, -1, 1}, {4, 3, 5}, {4, 3, -1}})
    EXPECT_TRUE(std::isnan(lossOf(input, length, target))) << input << " " << length << " " << target;
}
} // namespace
