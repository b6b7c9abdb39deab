//===- CtcTest.cpp - connectionist temporal classification on a device -----===//

#include "OnDevice.h"

#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
struct Shape {
  int64_t frames, batch, classes, targets;
  bool concatenated, zeroInfinity;
};

class Ctc : public OnDevice {
protected:
  /// Samples of all lengths, some of which cannot be written in their frames, the last out of range.
  void check(Shape s) {
    dsopt_ctc d{s.frames, s.batch, s.classes, s.targets, s.concatenated, s.classes / 2, s.zeroInfinity};
    auto logs = randomNumbers(s.frames * s.batch * s.classes, 1), grad = randomNumbers(s.batch, 2);
    for (int64_t row = 0; row < s.frames * s.batch; ++row) { // logarithms of probabilities
      double sum = 0;
      for (int64_t c = 0; c < s.classes; ++c)
        sum += std::exp(logs[row * s.classes + c]);
      for (int64_t c = 0; c < s.classes; ++c)
        logs[row * s.classes + c] -= static_cast<float>(std::log(sum));
    }
    std::vector<int64_t> inputs(s.batch), lengths(s.batch);
    int64_t sum = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      inputs[n] = n % 4 == 3 ? 0 : s.frames - n % 3;
      lengths[n] = n % 8 == 7 ? 0 : n % (s.targets + 1);
      sum += lengths[n];
    }
    if (!s.concatenated)
      inputs.back() = s.frames + 1;
    else
      d.targets = sum;
    std::vector<int64_t> targets(s.concatenated ? sum : s.batch * s.targets);
    for (size_t i = 0; i < targets.size(); ++i) // equal neighbours among them
      targets[i] = static_cast<int64_t>(i / 2 * 5 % s.classes);
    std::vector<float> losses(s.batch), gradient(logs.size());
    std::vector<char> scratch(dsopt_ctc_workspace(&d, 0)), more(dsopt_ctc_workspace(&d, 1));
    dsopt_rt_ctc(&rt, &d, logs.data(), targets.data(), inputs.data(), lengths.data(), scratch.data(),
                 losses.data());
    dsopt_rt_ctc_grad(&rt, &d, logs.data(), targets.data(), inputs.data(), lengths.data(), grad.data(),
                      more.data(), gradient.data());
    auto *logsThere = upload(logs), *gradThere = upload(grad);
    auto *targetsThere = upload(targets), *inputsThere = upload(inputs), *lengthsThere = upload(lengths);
    auto *lossesThere = room<float>(s.batch * 4), *gradientThere = room<float>(gradient.size() * 4);
    ctc(device, stream, d, logsThere, targetsThere, inputsThere, lengthsThere,
        room(dsopt_device_ctc_workspace(&d, 0)), lossesThere);
    ctcGrad(device, stream, d, logsThere, targetsThere, inputsThere, lengthsThere, gradThere,
            room(dsopt_device_ctc_workspace(&d, 1)), gradientThere);
    expectNear(download(lossesThere, s.batch), losses);
    expectNear(download(gradientThere, gradient.size()), gradient);
  }
  static void expectNear(const std::vector<float> &got, const std::vector<float> &expected) {
    for (size_t i = 0; i < got.size(); ++i)
      if (std::isfinite(expected[i]))
        ASSERT_NEAR(got[i], expected[i], 2e-7 * (1 + std::abs(expected[i]))) << i;
      else
        ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i])
            << i << ": got " << got[i];
  }
};
} // namespace

TEST_F(Ctc, HasTheHostsLosses) {
  for (bool concatenated : {false, true})
    for (bool zeroInfinity : {false, true}) {
      SCOPED_TRACE(concatenated ? "concatenated" : "apart");
      ASSERT_NO_FATAL_FAILURE(check({23, 13, 11, 7, concatenated, zeroInfinity}));
      ASSERT_NO_FATAL_FAILURE(check({5, 9, 3, 8, concatenated, zeroInfinity}));
      ASSERT_NO_FATAL_FAILURE(check({150, 2, 140, 70, concatenated, zeroInfinity}));
      ASSERT_NO_FATAL_FAILURE(check({1, 2, 2, 1, concatenated, zeroInfinity}));
    }
}

} // namespace dsopt::runtime::cuda
