//===- ProductFailuresTest.cpp - what products say where they cannot be =======//

#include "ProductsFixture.h"

#include <cstdlib>

using namespace dsopt::runtime::cuda;

namespace {
/// Messages that have the software device's algorithms in them.
struct ProductFailures : ProductsTest {
  void SetUp() override {
    if (!findInSoftLibrary("softProductsFault"))
      GTEST_SKIP() << "not the software device";
  }
  Buffer place{1 << 20};

  std::string failureOfProduct(const dsopt_gemm &p, int64_t at = 0) {
    return failureOf([&] {
      products.multiply(stream, p, place.at(), place.at(1 << 18), place.at((1 << 19) + at), false, nullptr);
    });
  }
};
} // namespace

TEST(CublasLt, IsNotThere) {
  std::string text = failureOf([] { CublasLt::open({"libcublasLt.so.none", "libcublasLt.so.neither"}); });
  EXPECT_EQ(text.find("no cuBLASLt: libcublasLt.so.none: cannot open shared object file"), 0u) << text;
  EXPECT_NE(text.find("; libcublasLt.so.neither: "), std::string::npos) << text;
  EXPECT_NE(text.find("; the program needs version 12.0.0 or newer"), std::string::npos) << text;
}

TEST_F(ProductFailures, TheLibraryIsTooOldOrAnother) {
  setenv("SOFT_PRODUCTS_VERSION", "110805", 1);
  EXPECT_EQ(failureOf([] { CublasLt::open({"libcublasLt.so.13"}); }),
            "cuBLASLt is version 11.8.5, expected 12.0.0 or newer");
  unsetenv("SOFT_PRODUCTS_VERSION");
  EXPECT_EQ(failureOf([] { CublasLt::open({"libcuda.so.1"}); }),
            "cuBLASLt is version 0.0.0 and has no cublasLtGetVersion, expected 12.0.0 or newer");
}

TEST_F(ProductFailures, NoAlgorithm) {
  dsopt_gemm p = denseProduct(8, INT64_C(1) << 31, 4, 0, 1, DSOPT_BF16, DSOPT_F32);
  EXPECT_EQ(
      failureOfProduct(p),
      "cuBLASLt 13.1.0 has no algorithm for the product 8x2147483648x4 NT (bf16 to f32, aligned to 8, 8 "
      "and 16 bytes) on sm_90: an extent of 2147483648, expected at most 2147483647");
  EXPECT_EQ(products.library(), "cuBLASLt 13.1.0");
}

TEST_F(ProductFailures, RefusedAlgorithm) {
  // Which algorithm it is follows from the shape; that the lines are too far apart, from the call.
  dsopt_gemm p = denseProduct(8, 8, 4, 0, 0, DSOPT_F32, DSOPT_F32);
  p.lda = INT64_C(1) << 32;
  EXPECT_EQ(
      failureOfProduct(p),
      "cuBLASLt 13.1.0 refuses algorithm 66 (tile 15, stages 0, swizzle 0, custom option 0, inner shape 0, "
      "cluster shape 0) for the product 8x8x4 NN (f32 to f32, aligned to 16, 16 and 16 bytes) on sm_90: "
      "CUBLAS_STATUS_NOT_SUPPORTED (the functionality requested is not supported)");
}

TEST_F(ProductFailures, ContractionsInPieces) {
  dsopt_gemm p = denseProduct(8, 8, 4096, 0, 0, DSOPT_BF16, DSOPT_BF16);
  EXPECT_EQ(
      failureOfProduct(p),
      "the product 8x8x4096 NN (bf16 to f32, aligned to 16, 16 and 16 bytes) rounds its sums, expected a "
      "workspace at a multiple of 64");
  p.type_c = DSOPT_F32;
  EXPECT_EQ(failureOfProduct(p, 4),
            "the sums of the product 8x8x4096 NN (bf16 to f32, aligned to 16, 16 and 16 bytes) begin at an "
            "address that is no multiple of 16, as their lines do");
  dsopt_gemm_part part = {denseProduct(8, 8, 16, 0, 0, DSOPT_F32, DSOPT_F32), 8, 8, 32};
  EXPECT_EQ(failureOf([&] {
              products.multiplyPart(stream, part, place.at(), place.at(), nullptr, place.at(), false,
                                    nullptr);
            }),
            "the product 8x8x32 NN (f32 to f32, aligned to 16, 16 and 16 bytes) adds up 16 of its "
            "contraction's elements, expected all of them");
}

TEST_F(ProductFailures, EmptyProductsAreNothing) {
  for (int extent = 0; extent < 2; ++extent) {
    dsopt_gemm p = denseProduct(extent ? 8 : 0, extent ? 0 : 8, 4, 0, 0, DSOPT_F32, DSOPT_F32);
    EXPECT_EQ(failureOfProduct(p), "no error");
  }
}

TEST_F(ProductFailures, FullPrecisionWhateverTheEnvironmentAsksFor) {
  setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  dsopt_gemm p = denseProduct(8, 8, 4, 0, 0, DSOPT_F32, DSOPT_F32);
  p.lda = INT64_C(1) << 32;
  EXPECT_NE(failureOfProduct(p).find("refuses algorithm 66 (tile 15"), std::string::npos);
  unsetenv("NVIDIA_TF32_OVERRIDE");
}

TEST_F(ProductFailures, NothingIsLeftOpen) {
  auto count =
      reinterpret_cast<void (*)(int *, int *, int *, int *)>(findInSoftLibrary("softProductsOpenObjects"));
  // The fixture's handle is one.
  int handles, operations, layouts, preferences;
  {
    Products others(device);
    DSOPT_CUDA(cuMemsetD8Async, addressOf(place.at()), 0, size_t(1) << 16, stream);
    for (int64_t k : {8, 16})
      others.multiply(stream, denseProduct(8, 8, k, 0, 0, DSOPT_F32, DSOPT_F32), place.at(), place.at(4096),
                      place.at(8192), false, nullptr);
    stream.synchronize();
    count(&handles, &operations, &layouts, &preferences);
    EXPECT_EQ(std::vector<int>({handles, operations, layouts, preferences}), std::vector<int>({2, 2, 6, 0}));
  }
  count(&handles, &operations, &layouts, &preferences);
  EXPECT_EQ(std::vector<int>({handles, operations, layouts, preferences}), std::vector<int>({1, 0, 0, 0}));
}
