//===- ConvolutionsTest.cpp - convolutions against plain loops -------------===//

#include "Kernels/CUDA/Convolutions.h"
#include "ProductsFixture.h"

#include <cmath>
#include <cstdlib>
#include <random>

using namespace dsopt::runtime::cuda;

namespace {
/// Strides in elements of batch, channels and three dimensions that are moved over.
struct Layout {
  int64_t at[5];
  Layout(const dsopt_convolution &d, int64_t channels, const int64_t *extents) {
    int64_t stride = d.channels_last ? channels : 1;
    for (int64_t i = 2; i >= 0; --i) {
      at[2 + i] = stride;
      stride *= i < d.rank ? extents[i] : 1;
    }
    at[1] = d.channels_last ? 1 : stride;
    at[0] = d.channels_last ? stride : stride * channels;
  }
  int64_t of(int64_t first, int64_t second, const int64_t *place) const {
    return first * at[0] + second * at[1] + place[0] * at[2] + place[1] * at[3] + place[2] * at[4];
  }
};

/// Every product of an element of x and one of w, with the element of y that it is for.
template <typename Body> void forEachProduct(const dsopt_convolution &d, const Body &body) {
  Layout x(d, d.channels, d.size), w(d, d.channels / d.groups, d.kernel), y(d, d.outputs, d.count);
  auto extent = [&](const int64_t *values, int64_t i) { return i < d.rank ? values[i] : 1; };
  int64_t o[3], k[3], p[3];
  for (int64_t n = 0; n < d.batch; ++n)
    for (int64_t f = 0; f < d.outputs; ++f)
      for (int64_t c = 0; c < d.channels / d.groups; ++c)
        for (int64_t i = 0; i < dsopt_convolution_places(&d, d.count); ++i)
          for (int64_t j = 0; j < dsopt_convolution_places(&d, d.kernel); ++j) {
            bool isInside = true;
            int64_t restO = i, restK = j;
            for (int64_t l = 2; l >= 0; --l) {
              o[l] = restO % extent(d.count, l), restO /= extent(d.count, l);
              k[l] = restK % extent(d.kernel, l), restK /= extent(d.kernel, l);
              p[l] = l < d.rank ? o[l] * d.strides[l] + k[l] * d.dilations[l] - d.pads[l] : 0;
              isInside &= p[l] >= 0 && p[l] < extent(d.size, l);
            }
            int64_t channel = f / (d.outputs / d.groups) * (d.channels / d.groups) + c;
            if (isInside)
              body(x.of(n, channel, p), w.of(f, c, k), y.of(n, f, o));
          }
}

struct Case {
  int64_t rank, batch, channels, outputs, groups;
  int64_t size[3], kernel[3], strides[3], dilations[3], pads[3];
};
constexpr Case kCases[] = {
    {2, 2, 3, 5, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {2, 3, 4, 6, 2, {9, 5}, {3, 2}, {2, 3}, {1, 1}, {1, 0}},
    {2, 2, 6, 6, 6, {8, 8}, {3, 3}, {1, 2}, {1, 1}, {1, 1}}, // each channel by itself
    {2, 2, 3, 4, 1, {11, 13}, {3, 3}, {1, 2}, {2, 3}, {2, 1}},
    {2, 2, 3, 4, 1, {1, 17}, {1, 5}, {1, 2}, {1, 1}, {0, 2}}, // a line
    {3, 2, 3, 4, 1, {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 1, 1}, {1, 0, 1}},
    {2, 2, 8, 16, 1, {6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
};

dsopt_convolution describe(const Case &c, int64_t kind, int64_t type) {
  dsopt_convolution d{};
  d.kind = kind, d.type = type, d.channels_last = type == DSOPT_BF16;
  d.rank = c.rank, d.batch = c.batch, d.channels = c.channels, d.outputs = c.outputs, d.groups = c.groups;
  for (int64_t i = 0; i < c.rank; ++i) {
    d.size[i] = c.size[i], d.kernel[i] = c.kernel[i], d.strides[i] = c.strides[i];
    d.dilations[i] = c.dilations[i], d.pads[i] = c.pads[i];
    d.count[i] = (c.size[i] + 2 * c.pads[i] - (c.kernel[i] - 1) * c.dilations[i] - 1) / c.strides[i] + 1;
  }
  d.algorithm = dsopt_convolution_algorithm(&d);
  return d;
}

struct ConvolutionsTest : testing::Test {
  Device device{0};
  Stream stream;
  Convolutions convolutions{device};

  static Elements some(int64_t type, int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    Elements elements(type, count);
    // As many bits as fp32 has: TF32 would show.
    for (int64_t i = 0; i < count; ++i)
      elements.set(i, type == DSOPT_F32 ? random() / 1073741824.0 - 2
                                        : static_cast<double>(random() % 65) / 16 - 2);
    return elements;
  }
  /// The bytes of the result, which has `before` in it.
  Elements run(const dsopt_convolution &d, const Elements &a, const Elements &b, const Elements *before,
               int64_t resultCount) {
    Buffer ofA(a, stream), ofB(b, stream), workspace(dsopt_convolution_workspace(&d));
    Elements result = before ? *before : Elements(d.type, resultCount);
    Buffer place(static_cast<int64_t>(result.bytes.size()));
    if (before)
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(place.at()), before->bytes.data(), before->bytes.size(),
                 stream);
    convolutions.convolve(stream, d, ofA.at(), ofB.at(), place.at(), workspace.at(), before != nullptr);
    place.read(result, stream);
    return result;
  }
  void check(const dsopt_convolution &d, double tolerance) {
    int64_t counts[] = {dsopt_convolution_x(&d), dsopt_convolution_w(&d), dsopt_convolution_y(&d)};
    Elements x = some(d.type, counts[0], 1), w = some(d.type, counts[1], 2), y = some(d.type, counts[2], 3);
    const Elements &a = d.kind == DSOPT_CONVOLUTION_DATA ? y : x,
                   &b = d.kind == DSOPT_CONVOLUTION_WEIGHT ? y : w;
    const Elements &before = d.kind == DSOPT_CONVOLUTION_FORWARD ? y
                             : d.kind == DSOPT_CONVOLUTION_DATA  ? x
                                                                 : w;
    std::vector<double> expected(counts[d.kind == DSOPT_CONVOLUTION_FORWARD ? 2
                                        : d.kind == DSOPT_CONVOLUTION_DATA  ? 0
                                                                            : 1]);
    forEachProduct(d, [&](int64_t atX, int64_t atW, int64_t atY) {
      if (d.kind == DSOPT_CONVOLUTION_FORWARD)
        expected[atY] += x.get(atX) * w.get(atW);
      else if (d.kind == DSOPT_CONVOLUTION_DATA)
        expected[atX] += y.get(atY) * w.get(atW);
      else
        expected[atW] += x.get(atX) * y.get(atY);
    });
    int64_t count = static_cast<int64_t>(expected.size());
    Elements stored = run(d, a, b, nullptr, count), again = run(d, a, b, nullptr, count);
    Elements added = run(d, a, b, &before, count);
    EXPECT_EQ(stored.bytes, again.bytes) << convolutionText(d);
    for (int64_t i = 0; i < count; ++i) {
      double scale = std::max(1.0, std::abs(expected[i]));
      ASSERT_NEAR(stored.get(i), expected[i], tolerance * scale) << convolutionText(d) << " at " << i;
      ASSERT_NEAR(added.get(i), expected[i] + before.get(i), tolerance * scale)
          << convolutionText(d) << " at " << i;
    }
  }
};
} // namespace

TEST_F(ConvolutionsTest, AllKindsOfOddShapes) {
  for (const Case &c : kCases)
    for (int64_t kind : {DSOPT_CONVOLUTION_FORWARD, DSOPT_CONVOLUTION_DATA, DSOPT_CONVOLUTION_WEIGHT})
      check(describe(c, kind, DSOPT_F32), 1e-5);
}

TEST_F(ConvolutionsTest, Bf16WhereTheTableHasIt) {
  for (int64_t kind : {DSOPT_CONVOLUTION_FORWARD, DSOPT_CONVOLUTION_DATA})
    check(describe(kCases[7], kind, DSOPT_BF16), 1e-2);
}

TEST(ConvolutionTable, LeavesTheRestToProducts) {
  auto algorithm = [](const Case &c, int64_t kind, int64_t type) {
    return describe(c, kind, type).algorithm;
  };
  EXPECT_EQ(algorithm(kCases[0], DSOPT_CONVOLUTION_FORWARD, DSOPT_F32),
            DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM);
  EXPECT_EQ(algorithm(kCases[4], DSOPT_CONVOLUTION_FORWARD, DSOPT_F32), DSOPT_CONVOLUTION_IMPLICIT_GEMM);
  EXPECT_EQ(algorithm(kCases[4], DSOPT_CONVOLUTION_DATA, DSOPT_F32), DSOPT_CONVOLUTION_DATA_1);
  EXPECT_EQ(algorithm(kCases[4], DSOPT_CONVOLUTION_WEIGHT, DSOPT_F32), DSOPT_CONVOLUTION_WEIGHT_1);
  EXPECT_EQ(algorithm(kCases[7], DSOPT_CONVOLUTION_WEIGHT, DSOPT_BF16), DSOPT_CONVOLUTION_PRODUCTS);
  EXPECT_EQ(algorithm(kCases[0], DSOPT_CONVOLUTION_FORWARD, DSOPT_BF16), DSOPT_CONVOLUTION_PRODUCTS);
  EXPECT_EQ(algorithm(kCases[0], DSOPT_CONVOLUTION_FORWARD, DSOPT_F64), DSOPT_CONVOLUTION_PRODUCTS);
  Case volume = {3, 1, 4, 4, 1, {5, 5, 5}, {3, 3, 3}, {1, 1, 1}, {1, 2, 1}, {1, 1, 1}};
  EXPECT_EQ(algorithm(volume, DSOPT_CONVOLUTION_FORWARD, DSOPT_F32), DSOPT_CONVOLUTION_IMPLICIT_GEMM);
  EXPECT_EQ(algorithm(volume, DSOPT_CONVOLUTION_DATA, DSOPT_F32), DSOPT_CONVOLUTION_PRODUCTS);
  Case large = {2, 1 << 20, 64, 64, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(algorithm(large, DSOPT_CONVOLUTION_FORWARD, DSOPT_F32), DSOPT_CONVOLUTION_PRODUCTS);
}

TEST(Cudnn, IsNotThere) {
  std::string text = failureOf([] { Cudnn::open("libcudnn.so.none"); });
  EXPECT_EQ(text.find("no cuDNN: libcudnn.so.none: cannot open shared object file"), 0u) << text;
  EXPECT_NE(text.find("; the program's convolutions need version 9.0.0 or newer"), std::string::npos) << text;
}

TEST_F(ConvolutionsTest, TheLibraryIsTooOldOrAnother) {
  if (convolutions.library() != "cuDNN 9.13.0")
    GTEST_SKIP() << "not the software device";
  setenv("SOFT_CUDNN", "version=8907", 1);
  EXPECT_EQ(failureOf([] { Cudnn::open("libcudnn.so.9"); }),
            "cuDNN is version 8.9.7, expected 9.0.0 or newer");
  unsetenv("SOFT_CUDNN");
  EXPECT_EQ(failureOf([] { Cudnn::open("libcuda.so.1"); }),
            "cuDNN is version 0.0.0 and has no cudnnGetVersion, expected 9.0.0 or newer");
}

TEST_F(ConvolutionsTest, RefusedAlgorithmsAreNamed) {
  if (convolutions.library() != "cuDNN 9.13.0")
    GTEST_SKIP() << "not the software device";
  dsopt_convolution d = describe(kCases[4], DSOPT_CONVOLUTION_FORWARD, DSOPT_F32);
  auto failure = [&] {
    return failureOf([&] { convolutions.convolve(stream, d, nullptr, nullptr, nullptr, nullptr, false); });
  };
  d.algorithm = DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM;
  EXPECT_EQ(failure(),
            "cuDNN 9.13.0 refuses CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM for the convolution "
            "2x3x11x13 with 4x3x3x3 to 2x4x11x5 (f32, channels second, strides 1x2, dilations 2x3, pads "
            "2x1, 1 group) on sm_90: CUDNN_STATUS_NOT_SUPPORTED (IMPLICIT_PRECOMP_GEMM has no dilations)");
  d = describe(kCases[2], DSOPT_CONVOLUTION_WEIGHT, DSOPT_F32);
  setenv("SOFT_CUDNN", "scratch=5000000", 1);
  EXPECT_EQ(failure(),
            "cuDNN 9.13.0 takes 5000384 bytes of scratch with CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 for the "
            "gradient of w of the convolution 3x4x9x5 with 6x2x3x2 to 3x6x5x2 (f32, channels second, strides "
            "2x3, dilations 1x1, pads 1x0, 2 groups) on sm_90, but 1051904 are planned");
  unsetenv("SOFT_CUDNN");
}

TEST_F(ConvolutionsTest, NothingIsLeftOpen) {
  void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  auto count = reinterpret_cast<int (*)()>(library ? dlsym(library, "softConvolutionsOpenObjects") : nullptr);
  if (!count)
    GTEST_SKIP() << "not the software device";
  int before = count();
  {
    Convolutions others(device);
    dsopt_convolution d = describe(kCases[0], DSOPT_CONVOLUTION_FORWARD, DSOPT_F32);
    Buffer place(1 << 21);
    DSOPT_CUDA(cuMemsetD8Async, addressOf(place.at()), 0, size_t(1) << 21, stream);
    for (int i = 0; i < 2; ++i)
      others.convolve(stream, d, place.at(), place.at(1 << 14), place.at(1 << 15), place.at(1 << 17), false);
    stream.synchronize();
    EXPECT_EQ(count(), before + 5);
  }
  EXPECT_EQ(count(), before);
}
