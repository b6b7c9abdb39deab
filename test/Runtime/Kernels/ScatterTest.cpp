//===- ScatterTest.cpp - rows put at indices, against a plain loop ---------===//

#include "Kernels/CPU/Runtime.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
template <typename T> T plain(int64_t mode, T x, T y) {
  return mode == DSOPT_SCATTER_ADD   ? x + y
         : mode == DSOPT_SCATTER_MUL ? x * y
         : mode == DSOPT_SCATTER_MIN ? (y < x ? y : x)
         : mode == DSOPT_SCATTER_MAX ? (y > x ? y : x)
                                     : y;
}

template <typename T> void check(int64_t count, int64_t width, int64_t size) {
  std::vector<T> data(size * width), updates(count * width);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<T>(i * 7 % 13);
  for (size_t i = 0; i < updates.size(); ++i)
    updates[i] = static_cast<T>(i * 5 % 11);
  std::vector<int64_t> wide(count);
  std::vector<int32_t> narrow(count);
  for (int64_t i = 0; i < count; ++i) // some from the end, some outside
    narrow[i] = wide[i] = i % 17 == 3 ? size : i * 7 % size - (i % 3 ? 0 : size);
  for (int64_t mode = DSOPT_SCATTER_SET; mode <= DSOPT_SCATTER_MAX; ++mode) {
    std::vector<T> expected = data;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0, row = wide[i] < 0 ? wide[i] + size : wide[i]; k < width && row < size; ++k)
        expected[row * width + k] = plain<T>(mode, expected[row * width + k], updates[i * width + k]);
    for (int threads : {1, 2, 3, 8})
      for (int64_t indexBytes : {4, 8}) {
        ThreadPool pool(threads, 0);
        dsopt_rt rt;
        rt.pool = &pool;
        dsopt_scatter scatter{count, width, size, indexBytes, sizeof(T), std::is_floating_point_v<T>, mode};
        std::vector<T> result(data.size());
        dsopt_rt_scatter(&rt, &scatter, data.data(),
                         indexBytes == 4 ? static_cast<void *>(narrow.data()) : wide.data(), updates.data(),
                         result.data());
        ASSERT_EQ(result, expected) << "mode " << mode << " threads " << threads;
      }
  }
}

TEST(Scatter, SameBitsAsAPlainLoopWithAnyThreads) {
  for (auto [count, width, size] :
       {std::array<int64_t, 3>{1, 1, 1}, {15, 17, 5}, {1023, 1, 20000}, {500, 200, 50}, {70, 1, 30}}) {
    check<float>(count, width, size);
    check<int32_t>(count, width, size);
    check<int64_t>(count, width, size);
    check<uint8_t>(count, width, size);
  }
}
} // namespace
