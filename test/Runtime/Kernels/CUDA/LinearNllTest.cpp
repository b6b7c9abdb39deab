//===- LinearNllTest.cpp - the loss over a vocabulary on a device ----------===//

#include "../LinearNllReference.h"
#include "OnDevice.h"

#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
class LinearNll : public OnDevice {
protected:
  /// A matrix as the device has it, row by row: what lies between rows nobody has written.
  std::vector<double> read(const void *from, int64_t type, int64_t rows, int64_t columns, int64_t stride) {
    std::vector<double> values;
    for (int64_t row = 0; row < rows; ++row)
      if (type == DSOPT_BF16) {
        for (uint16_t value : download(static_cast<const uint16_t *>(from) + row * stride, columns))
          values.push_back(bf16ToFloat(value));
      } else if (type == DSOPT_F16) {
        for (_Float16 value : download(static_cast<const _Float16 *>(from) + row * stride, columns))
          values.push_back(value);
      } else {
        for (float value : download(static_cast<const float *>(from) + row * stride, columns))
          values.push_back(value);
      }
    return values;
  }
  template <typename T> void write(T *to, const std::vector<float> &row) {
    auto values = stored<T>(row);
    DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(to), values.data(), values.size() * sizeof(T), stream);
    stream.synchronize();
  }
  /// A product by the host, at its place in the stream.
  void multiply(const dsopt_gemm &p, const void *a, const void *b, void *c, bool accumulates) {
    auto left = p.transpose_a ? read(a, p.type_ab, p.k, p.m, p.lda) : read(a, p.type_ab, p.m, p.k, p.lda);
    auto right = p.transpose_b ? read(b, p.type_ab, p.n, p.k, p.ldb) : read(b, p.type_ab, p.k, p.n, p.ldb);
    std::vector<double> before(p.m * p.n);
    if (accumulates)
      before = read(c, p.type_c, p.m, p.n, p.ldc);
    for (int64_t i = 0; i < p.m; ++i) {
      std::vector<float> row(p.n);
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = before[i * p.n + j];
        for (int64_t l = 0; l < p.k; ++l)
          sum += left[p.transpose_a ? l * p.m + i : i * p.k + l] *
                 right[p.transpose_b ? j * p.k + l : l * p.n + j];
        row[j] = static_cast<float>(sum);
      }
      if (p.type_c == DSOPT_BF16)
        write(static_cast<uint16_t *>(c) + i * p.ldc, row);
      else if (p.type_c == DSOPT_F16)
        write(static_cast<_Float16 *>(c) + i * p.ldc, row);
      else
        write(static_cast<float *>(c) + i * p.ldc, row);
    }
  }
  Multiply byHost() {
    return [this](const dsopt_gemm &p, const void *a, const void *b, void *c, void *, bool accumulates) {
      multiply(p, a, b, c, accumulates);
    };
  }

  /// `T` is what inputs are stored as, `Result` what the gradients of weight and bias are.
  template <typename T, typename Result, typename Label>
  void check(LinearNllShape s, bool transposed, bool hasBias) {
    dsopt_linear_nll d = {s.rows,        s.depth,     s.classes,        transposed,      -100,
                          sizeof(Label), typeOf<T>(), typeOf<Result>(), typeOf<Result>()};
    auto x = numbersAs<T>(s.rows * s.depth, 1), w = numbersAs<T>(s.classes * s.depth, 2, 0.5f),
         bias = numbersAs<T>(s.classes, 3);
    std::vector<float> grad = randomNumbers(s.rows, 4, 0.1f);
    auto start = numbersAs<Result>(s.classes * s.depth, 5), startBias = numbersAs<Result>(s.classes, 6);
    std::vector<int64_t> labels(s.rows);
    for (int64_t i = 0; i < s.rows; ++i)
      labels[i] = i % 5 == 3 ? -100 : i * 7919 % s.classes;
    std::vector<Label> narrow(labels.begin(), labels.end());
    auto *xThere = upload(x), *wThere = upload(w), *biasThere = hasBias ? upload(bias) : nullptr;
    auto *labelsThere = upload(narrow);
    auto *gradThere = upload(grad);
    for (bool accumulates : {true, false}) {
      auto *losses = room<float>(s.rows * 4);
      auto *dx = room<T>(x.size() * sizeof(T));
      auto *dw = accumulates ? upload(start) : room<Result>(start.size() * sizeof(Result));
      Result *db = !hasBias      ? nullptr
                   : accumulates ? upload(startBias)
                                 : room<Result>(s.classes * sizeof(Result));
      linearNll(device, stream, byHost(), d, xThere, wThere, biasThere, labelsThere, gradThere, losses, dx,
                dw, db, room(dsopt_device_linear_nll_workspace(&d)), accumulates, accumulates);
      LinearNllReference r = referenceOf(s, transposed, x, w, hasBias ? &bias : nullptr, labels, grad);
      int64_t chunk = dsopt_device_linear_nll_chunk(s.rows, s.classes), chunks = (s.rows + chunk - 1) / chunk;
      // Each term of a sum has the rounded gradient of a logit in it; then the result is rounded.
      auto near = [](double got, double expected, double size, bool isNarrow, int64_t roundings) {
        double terms = sizeof(T) == 2 ? size / 256 : 0;
        double result = isNarrow ? roundings * (std::abs(expected) + size) / 256 : 0;
        ASSERT_NEAR(got, expected, 2e-5 + 2e-5 * size + terms + result);
      };
      auto lossesHere = download(losses, s.rows);
      for (int64_t i = 0; i < s.rows; ++i)
        ASSERT_NEAR(lossesHere[i], r.losses[i], 2e-5) << i;
      auto dxHere = widened(download(dx, x.size())), dwHere = widened(download(dw, start.size()));
      for (size_t i = 0; i < dxHere.size(); ++i)
        ASSERT_NO_FATAL_FAILURE(near(dxHere[i], r.dx[i], r.sizeX[i], sizeof(T) == 2, 1));
      auto before = widened(start), beforeBias = widened(startBias);
      constexpr bool isNarrow = sizeof(Result) == 2;
      for (size_t i = 0; i < dwHere.size(); ++i)
        ASSERT_NO_FATAL_FAILURE(
            near(dwHere[i], (accumulates ? before[i] : 0) + r.dw[i], r.sizeW[i], isNarrow, chunks));
      if (hasBias) {
        auto dbHere = widened(download(db, s.classes));
        for (int64_t c = 0; c < s.classes; ++c)
          ASSERT_NO_FATAL_FAILURE(
              near(dbHere[c], (accumulates ? beforeBias[c] : 0) + r.db[c], r.sizeB[c], isNarrow, chunks));
      }
    }
  }
};
} // namespace

TEST(LinearNllWorkspace, FollowsFromTheShape) {
  EXPECT_EQ(dsopt_device_linear_nll_stride(50257), 50272);
  EXPECT_EQ(dsopt_device_linear_nll_chunk(100, 1000), 100);
  EXPECT_EQ(dsopt_device_linear_nll_chunk(8192, 50257), 1216);
  EXPECT_EQ(dsopt_device_linear_nll_chunk(1000, 256000), 512);
  // Behind the logits lie sums of the products that round them: of x, or of the weight where there are rows
  // enough.
  dsopt_linear_nll d = {5000, 16, 5000, 1, -100, 4, DSOPT_F32, DSOPT_F32, DSOPT_F32};
  EXPECT_EQ(dsopt_device_linear_nll_workspace(&d), dsopt_device_linear_nll_logits(&d));
  EXPECT_EQ(dsopt_device_linear_nll_logits(&d), INT64_C(5000) * 5024 * 4);
  d.type = DSOPT_BF16;
  EXPECT_EQ(dsopt_device_linear_nll_workspace(&d), dsopt_device_linear_nll_logits(&d) + 5000 * 16 * 4);
  d.classes = 2048, d.type_weight_grad = DSOPT_BF16;
  EXPECT_EQ(dsopt_device_linear_nll_workspace(&d), dsopt_device_linear_nll_logits(&d) + 2048 * 16 * 4);
  d.type = d.type_weight_grad = DSOPT_F16;
  EXPECT_EQ(dsopt_device_linear_nll_workspace(&d), dsopt_device_linear_nll_logits(&d) + 2048 * 16 * 4);
}

TEST_F(LinearNll, IsTheDefinition) {
  for (LinearNllShape s : {LinearNllShape{1, 1, 1}, {15, 17, 15}, {7, 3, 2500}, {5, 9, 4097}})
    for (bool hasBias : {false, true}) {
      SCOPED_TRACE(std::to_string(s.classes) + (hasBias ? " with a bias" : ""));
      ASSERT_NO_FATAL_FAILURE((check<float, float, int64_t>(s, true, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<float, uint16_t, int32_t>(s, false, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<uint16_t, float, int32_t>(s, true, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<uint16_t, uint16_t, int64_t>(s, false, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<float, _Float16, int32_t>(s, false, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<_Float16, float, int32_t>(s, true, hasBias)));
      ASSERT_NO_FATAL_FAILURE((check<_Float16, _Float16, int64_t>(s, false, hasBias)));
    }
}

TEST_F(LinearNll, TilesAddUp) {
  // A tile has 512 rows where there are so many classes: the rows behind them go to the same gradients.
  constexpr int64_t kClasses = 140000, kRows = 515;
  dsopt_linear_nll d = {kRows, 1, kClasses, 1, -100, 4, DSOPT_F32, DSOPT_F32, DSOPT_F32};
  ASSERT_EQ(dsopt_device_linear_nll_chunk(kRows, kClasses), 320);
  std::vector<std::pair<int64_t, bool>> products;
  Multiply note = [&](const dsopt_gemm &p, const void *, const void *, void *, void *, bool accumulates) {
    products.push_back({p.transpose_a ? p.k : p.m, accumulates});
  };
  // All labels are ignored, so that no logit is read.
  std::vector<int32_t> labels(kRows, -100);
  auto *labelsThere = upload(labels);
  auto *x = upload(std::vector<float>(kRows)), *losses = room<float>(kRows * 4),
       *grad = upload(std::vector<float>(kRows));
  auto *dw = upload(std::vector<float>(1));
  linearNll(device, stream, note, d, x, x, nullptr, labelsThere, grad, losses, nullptr, dw, nullptr,
            room(dsopt_device_linear_nll_workspace(&d)), false, false);
  EXPECT_EQ(download(losses, kRows), std::vector<float>(kRows));
  EXPECT_EQ(products,
            (std::vector<std::pair<int64_t, bool>>{{320, false}, {320, false}, {195, false}, {195, true}}));
}

TEST_F(LinearNll, KeepsWhatIsNotFinite) {
  dsopt_linear_nll d = {3, 1, 40, 1, -100, 4, DSOPT_F32, DSOPT_F32, DSOPT_F32};
  auto *x = upload<float>({1, NAN, INFINITY}), *w = upload(std::vector<float>(40, 2)),
       *grad = upload<float>({1, 1, 1});
  auto *losses = room<float>(12), *dx = room<float>(12);
  auto *labels = upload<int32_t>({1, 2, 3});
  linearNll(device, stream, byHost(), d, x, w, nullptr, labels, grad, losses, dx, nullptr, nullptr,
            room(dsopt_device_linear_nll_workspace(&d)), false, false);
  auto got = download(losses, 3), gradient = download(dx, 3);
  EXPECT_NEAR(got[0], std::log(40.0), 1e-6);
  EXPECT_FALSE(std::isfinite(got[1]) || std::isfinite(got[2]));
  EXPECT_FALSE(std::isfinite(gradient[1]) || std::isfinite(gradient[2]));
}

TEST_F(LinearNll, PassesOverClassesThatAreRuledOut) {
  dsopt_linear_nll d = {1, 1, 5000, 1, -100, 4, DSOPT_F32, DSOPT_F32, DSOPT_F32};
  std::vector<float> bias(5000, -INFINITY);
  bias[3] = 1, bias[4999] = 2;
  auto *x = upload<float>({1}), *w = upload(std::vector<float>(5000, 0.0f)), *grad = upload<float>({1}),
       *b = upload(bias);
  auto *losses = room<float>(4), *dx = room<float>(4), *db = room<float>(20000);
  linearNll(device, stream, byHost(), d, x, w, b, upload<int32_t>({3}), grad, losses, dx, nullptr, db,
            room(dsopt_device_linear_nll_workspace(&d)), false, false);
  EXPECT_NEAR(download(losses, 1)[0], std::log1p(std::exp(1.0)), 1e-6);
  auto gradient = download(db, 5000);
  EXPECT_NEAR(gradient[3], 1 / (1 + std::exp(1.0)) - 1, 1e-6);
  EXPECT_NEAR(gradient[4999], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(gradient[0], 0);
}

} // namespace dsopt::runtime::cuda
