//===- ElementwiseTest.cpp - sums by element, to the host's bits -----------===//

#include "OnDevice.h"

#include <cfloat>
#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
class Elementwise : public OnDevice {
protected:
  /// Adds `value` to numbers of 16 bits, or rounds it to those.
  template <typename T>
  void checkNarrow(const std::vector<float> &value, float *valueThere, int64_t offset, bool accumulates) {
    auto narrow = numbersAs<T>(value.size(), 2);
    int64_t elements = value.size() - offset;
    T *there = upload(narrow);
    accumulate(device, stream, elements, valueThere + offset, there + offset, typeOf<T>(), accumulates);
    dsopt_rt_accumulate(&rt, elements, value.data() + offset, narrow.data() + offset, typeOf<T>(),
                        accumulates);
    expectSame(download(there, value.size()), narrow);
  }
  template <typename T> void checkAdd(const std::vector<float> &values, int64_t elements) {
    auto to = stored<T>(values), more = numbersAs<T>(elements, 4);
    T *there = upload(to), *moreThere = upload(more);
    cuda::addInto(device, stream, there, moreThere, elements, typeOf<T>());
    runtime::addInto(to.data(), more.data(), elements);
    expectSame(download(there, elements), to);
  }
};

/// Numbers of all sizes, to the ends of what there is; ties of bf16 and f16 among them.
std::vector<float> odd(std::vector<float> values) {
  const float some[] = {0.0f,         -0.0f,        FLT_MAX,       -FLT_MAX,   FLT_TRUE_MIN, -FLT_MIN,
                        INFINITY,     0x1.01p0f,    0x1.03p0f,     0x1.018p0f, 0x1.fep127f,  0x1.ffp127f,
                        1e-40f,       -3.0e-39f,    0x1.808p-120f, 0x1p-133f,  0x1.002p3f,   0x1.006p-3f,
                        65504.0f,     65519.0f,     -65520.0f,     0x1p-24f,   0x1.8p-24f,   0x1p-25f,
                        0x1.802p-15f, -0x1.004p-16f};
  for (size_t i = 0; i < values.size(); i += 3)
    values[i] = some[i / 3 % std::size(some)];
  return values;
}
} // namespace

TEST_F(Elementwise, AccumulateHasTheHostsBits) {
  for (int64_t elements : {0, 1, 7, 8, 2047, 2048, 5003})
    for (int64_t offset : {0, 1}) // of 16-byte accesses
      for (int64_t accumulates : {0, 1}) {
        std::vector<float> value = odd(randomNumbers(elements + offset, 1)),
                           wide = randomNumbers(elements + offset, 2);
        auto *valueThere = upload(value), *wideThere = upload(wide);
        accumulate(device, stream, elements, valueThere + offset, wideThere + offset, DSOPT_F32, accumulates);
        dsopt_rt_accumulate(&rt, elements, value.data() + offset, wide.data() + offset, DSOPT_F32,
                            accumulates);
        ASSERT_NO_FATAL_FAILURE(expectSame(download(wideThere, elements + offset), wide));
        ASSERT_NO_FATAL_FAILURE(checkNarrow<uint16_t>(value, valueThere, offset, accumulates));
        ASSERT_NO_FATAL_FAILURE(checkNarrow<_Float16>(value, valueThere, offset, accumulates));
      }
}

TEST_F(Elementwise, AddIntoHasTheHostsBits) {
  for (int64_t elements : {1, 15, 4096, 4099}) {
    std::vector<float> values = odd(randomNumbers(elements, 3));
    ASSERT_NO_FATAL_FAILURE(checkAdd<float>(values, elements));
    ASSERT_NO_FATAL_FAILURE(checkAdd<uint16_t>(values, elements));
    ASSERT_NO_FATAL_FAILURE(checkAdd<_Float16>(values, elements));
  }
}

TEST_F(Elementwise, FoldTakesMicroBatchesInOrder) {
  constexpr int64_t kElements = 300, kPlace = 16, kBytes = 4 * kElements + 64,
                    kBatches = 130; // more than a launch carries
  std::vector<float> running = randomNumbers(kElements, 1),
                     statistics = randomNumbers(kBatches * kBytes / 4, 2);
  std::vector<int64_t> places(kBatches);
  for (int64_t i = 0; i < kBatches; ++i)
    places[i] = i * 37 % kBatches;
  auto *runningThere = upload(running);
  auto *statisticsThere = upload(statistics);
  double momentum = 0.9;
  fold(device, stream, runningThere, statisticsThere + kPlace / 4, kBytes, kElements, places.data(), kBatches,
       momentum);
  float keep = static_cast<float>(momentum), take = static_cast<float>(1 - momentum);
  for (int64_t place : places)
    for (int64_t i = 0; i < kElements; ++i) {
      volatile float kept = keep * running[i], taken = take * statistics[(place * kBytes + kPlace) / 4 + i];
      running[i] = kept + taken;
    }
  expectSame(download(runningThere, kElements), running);
}

} // namespace dsopt::runtime::cuda
