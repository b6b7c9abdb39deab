//===- ElementwiseTest.cpp - additions whose order is fixed ----------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace dsopt::runtime;

static std::vector<float> randomFloats(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random) * std::exp2(static_cast<float>(random() % 20));
  return values;
}

/// The definition: neighbours paired level by level, an odd one carried up.
static float tree(std::vector<float> level) {
  while (level.size() > 1) {
    std::vector<float> up;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      up.push_back(level[i] + level[i + 1]);
    if (level.size() % 2)
      up.push_back(level.back());
    level = up;
  }
  return level[0];
}

TEST(TreeSum, FollowsTheCanonicalTree) {
  constexpr int64_t elements = 1100;
  for (int count = 1; count <= 20; ++count) {
    std::vector<std::vector<float>> parts;
    std::vector<const float *> pointers;
    for (int i = 0; i < count; ++i)
      parts.push_back(randomFloats(elements, i + 100 * count));
    for (auto &part : parts)
      pointers.push_back(part.data());
    std::vector<float> sum(elements), more = randomFloats(elements, 7), before = more;
    treeSum(pointers.data(), count, sum.data(), elements, false);
    treeSum(pointers.data(), count, more.data(), elements, true);
    for (int64_t i = 0; i < elements; ++i) {
      std::vector<float> leaves;
      for (auto &part : parts)
        leaves.push_back(part[i]);
      ASSERT_EQ(sum[i], tree(leaves)) << count;
      ASSERT_EQ(more[i], before[i] + tree(leaves)) << count;
    }
    // In place of a part.
    treeSum(pointers.data(), count, parts[count / 2].data(), elements, false);
    ASSERT_EQ(std::memcmp(parts[count / 2].data(), sum.data(), elements * 4), 0);
  }
}

TEST(ScatterAdd, SameBitsWithAnyThreads) {
  constexpr int64_t count = 500, width = 200, size = 50;
  std::vector<float> rows = randomFloats(count * width, 1), first;
  std::vector<int64_t> wide(count);
  std::vector<int32_t> narrow(count);
  for (int64_t i = 0; i < count; ++i)
    narrow[i] = wide[i] = i * 7 % size - (i % 3 ? 0 : size);
  for (int threads : {1, 2, 3, 8})
    for (int indexBytes : {4, 8})
      for (int accumulate : {0, 1}) {
        ThreadPool pool(threads, 0);
        dsopt_rt rt;
        rt.pool = &pool;
        std::vector<float> result(size * width, accumulate ? 0.0f : 5.0f);
        dsopt_rt_scatter_add_f32(&rt, count, width, size, rows.data(),
                                 indexBytes == 4 ? static_cast<void *>(narrow.data()) : wide.data(),
                                 indexBytes, result.data(), accumulate);
        if (first.empty()) {
          first = result;
          float expected = 0;
          for (int64_t i = 0; i < count; ++i)
            if (i * 7 % size == 3)
              expected += rows[i * width + 11];
          EXPECT_EQ(result[3 * width + 11], expected);
        }
        EXPECT_EQ(result, first);
      }
}

TEST(Accumulate, StoresOrAdds) {
  ThreadPool pool(3, 0);
  dsopt_rt rt;
  rt.pool = &pool;
  std::vector<float> value = randomFloats(100000, 1), gradient(100000, NAN);
  dsopt_rt_accumulate_f32(&rt, value.size(), value.data(), gradient.data(), 0);
  EXPECT_EQ(gradient, value);
  dsopt_rt_accumulate_f32(&rt, value.size(), value.data(), gradient.data(), 1);
  for (size_t i = 0; i < value.size(); ++i)
    ASSERT_EQ(gradient[i], value[i] + value[i]);
}

static void countRange(int64_t begin, int64_t end, void *const *args) {
  for (int64_t i = begin; i < end; ++i)
    ++static_cast<int *>(args[0])[i];
  if (begin % *static_cast<int64_t *>(args[1]))
    static_cast<int *>(args[0])[begin] += 100;
}

TEST(Launch, CoversTheRangeOnceAtMultiplesOfGrain) {
  ThreadPool pool(3, 100);
  dsopt_rt rt;
  rt.pool = &pool;
  for (int64_t grain : {1, 64})
    for (int64_t range : {1, 63, 64, 65, 1000, 100000})
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<int> seen(range);
        void *args[] = {seen.data(), &grain};
        dsopt_rt_launch(&rt, countRange, range, grain, args);
        ASSERT_EQ(seen, std::vector<int>(range, 1));
      }
}
