//===- ScatterTest.cpp - rows put at indices, to the host's bits -----------===//

#include "OnDevice.h"

namespace dsopt::runtime::cuda {

namespace {
/// Count, width and rows of the result.
struct Shape {
  int64_t count, width, size;
};

class Scatter : public OnDevice {
protected:
  /// Some from the end, some outside; `hot` of eight go to one place.
  static std::vector<int64_t> indicesOf(Shape s, int hot) {
    std::mt19937 random(7);
    std::vector<int64_t> indices(s.count);
    for (int64_t i = 0; i < s.count; ++i) {
      int64_t row = static_cast<int64_t>(random() % s.size);
      indices[i] = i % 17 == 3                            ? s.size + i % 2
                   : i % 19 == 5                          ? -s.size - 1
                   : static_cast<int>(random() % 8) < hot ? s.size / 2
                                                          : row - (i % 3 ? 0 : s.size);
    }
    return indices;
  }

  template <typename Source, typename Target> void checkAdd(Shape s, int hot) {
    std::vector<int64_t> wide = indicesOf(s, hot);
    std::vector<int32_t> narrow(wide.begin(), wide.end());
    auto rows = numbersAs<Source>(s.count * s.width, 1);
    auto start = numbersAs<Target>(s.size * s.width, 2);
    auto *rowsThere = upload(rows);
    auto *wideThere = upload(wide);
    auto *narrowThere = upload(narrow);
    for (auto [sums, accumulates] : {std::pair(0, 0), {0, 1}, {1, 1}})
      for (int64_t indexBytes : {4, 8}) {
        dsopt_scatter_add d{s.count, s.width, s.size, indexBytes, typeOf<Source>(), typeOf<Target>(), sums};
        std::vector<Target> expected = start;
        std::vector<uint64_t> order(s.count);
        dsopt_rt_scatter_add(&rt, &d, rows.data(),
                             indexBytes == 4 ? static_cast<void *>(narrow.data()) : wide.data(),
                             expected.data(), order.data(), accumulates);
        auto *result = accumulates ? upload(start) : room<Target>(start.size() * sizeof(Target));
        auto *workspace = room(dsopt_device_scatter_add_workspace(&d));
        cuda::scatterAdd(device, stream, d, rowsThere,
                         indexBytes == 4 ? static_cast<void *>(narrowThere) : wideThere, result, workspace,
                         accumulates);
        SCOPED_TRACE("sums " + std::to_string(sums) + " accumulates " + std::to_string(accumulates));
        ASSERT_NO_FATAL_FAILURE(expectSame(download(result, start.size()), expected));
      }
  }

  template <typename T> void check(Shape s, int hot) {
    std::vector<T> data(s.size * s.width), updates(s.count * s.width);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<T>(i * 7 % 13) / 3;
    for (size_t i = 0; i < updates.size(); ++i)
      updates[i] = static_cast<T>(i * 5 % 11) / 3;
    std::vector<int64_t> wide = indicesOf(s, hot);
    std::vector<int32_t> narrow(wide.begin(), wide.end());
    auto *dataThere = upload(data), *updatesThere = upload(updates);
    auto *wideThere = upload(wide);
    auto *narrowThere = upload(narrow);
    for (int64_t mode = DSOPT_SCATTER_SET; mode <= DSOPT_SCATTER_MAX; ++mode)
      for (int64_t indexBytes : {4, 8}) {
        dsopt_scatter d{s.count, s.width, s.size, indexBytes, sizeof(T), std::is_floating_point_v<T>, mode};
        std::vector<T> expected(data.size());
        dsopt_rt_scatter(&rt, &d, data.data(),
                         indexBytes == 4 ? static_cast<void *>(narrow.data()) : wide.data(), updates.data(),
                         expected.data());
        bool isInPlace = mode % 2;
        T *result = isInPlace ? upload(data) : room<T>(data.size() * sizeof(T));
        cuda::scatter(device, stream, d, isInPlace ? result : dataThere,
                      indexBytes == 4 ? static_cast<void *>(narrowThere) : wideThere, updatesThere, result);
        SCOPED_TRACE("mode " + std::to_string(mode));
        ASSERT_NO_FATAL_FAILURE(expectSame(download(result, data.size()), expected));
      }
  }
};

const std::vector<std::pair<Shape, int>> kShapes = {
    {{1, 1, 1}, 0},      {{15, 17, 5}, 0},    {{1023, 1, 70001}, 1}, {{300, 200, 50}, 4},
    {{5000, 3, 256}, 3}, {{9000, 1, 300}, 1}, {{0, 5, 3}, 0}};
} // namespace

TEST_F(Scatter, AddHasTheHostsBits) {
  for (auto [shape, hot] : kShapes) {
    SCOPED_TRACE("count " + std::to_string(shape.count));
    ASSERT_NO_FATAL_FAILURE((checkAdd<float, float>(shape, hot)));
    ASSERT_NO_FATAL_FAILURE((checkAdd<uint16_t, float>(shape, hot)));
    // How many blocks there are has nothing to do with the type.
    if (shape.count > 1000)
      continue;
    ASSERT_NO_FATAL_FAILURE((checkAdd<float, uint16_t>(shape, hot)));
    ASSERT_NO_FATAL_FAILURE((checkAdd<uint16_t, uint16_t>(shape, hot)));
    ASSERT_NO_FATAL_FAILURE((checkAdd<_Float16, float>(shape, hot)));
    ASSERT_NO_FATAL_FAILURE((checkAdd<float, _Float16>(shape, hot)));
    ASSERT_NO_FATAL_FAILURE((checkAdd<_Float16, _Float16>(shape, hot)));
  }
}

TEST_F(Scatter, HasTheHostsBits) {
  for (auto [shape, hot] : kShapes) {
    SCOPED_TRACE("count " + std::to_string(shape.count));
    ASSERT_NO_FATAL_FAILURE(check<float>(shape, hot));
    if (shape.count > 1000)
      continue;
    ASSERT_NO_FATAL_FAILURE(check<int32_t>(shape, hot));
    ASSERT_NO_FATAL_FAILURE(check<int64_t>(shape, hot));
    ASSERT_NO_FATAL_FAILURE(check<uint8_t>(shape, hot));
  }
}

} // namespace dsopt::runtime::cuda
