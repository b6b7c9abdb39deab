//===- ProductsTest.cpp - cuBLASLt's calls on the software device ---------===//

#include "Products/Api.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {
/// Attributes by the library's numbers.
enum : int {
  TransposeA = 3,
  Epilogue = 7,
  BiasPointer = 8,
  AuxPointer = 11,
  AuxLeading = 12,
  BatchCount = 5,
  BatchStride = 6,
  MaxWorkspace = 1,
  Reductions = 3,
  AlignmentA = 5
};

class ProductCalls : public testing::Test {
protected:
  void SetUp() override { begin(1); }
  void TearDown() override {
    cublasLtMatmulDescDestroy(operation);
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t one : layouts)
      cublasLtMatrixLayoutDestroy(one);
    cublasLtDestroy(handle);
    int open[4];
    softProductsOpenObjects(open, open + 1, open + 2, open + 3);
    EXPECT_EQ(open[0] + open[1] + open[2] + open[3], 0);
  }

  void begin(uint64_t seed) {
    softDeviceRestart(seed);
    CUcontext context;
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (handle)
      return;
    fine(cublasLtCreate(&handle));
    fine(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    fine(cublasLtMatmulPreferenceCreate(&preference));
    a = b = c = layout(CUDA_R_32F, 8, 8, 8);
  }
  void ok(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS) << softDeviceFault(); }
  void fine(cublasStatus_t status) { ASSERT_EQ(status, CUBLAS_STATUS_SUCCESS) << softProductsFault(); }
  void refuses(cublasStatus_t found, cublasStatus_t status, const std::string &text) {
    EXPECT_EQ(found, status);
    EXPECT_EQ(softProductsFault(), text);
  }
  /// What is wrong when the work is done.
  void faults(const std::string &text) {
    EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_NE(std::string(softDeviceFault()).find(text), std::string::npos) << softDeviceFault();
  }

  cublasLtMatrixLayout_t layout(int type, uint64_t rows, uint64_t columns, int64_t leading, int32_t count = 1,
                                int64_t stride = 0) {
    cublasLtMatrixLayout_t made;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&made, type, rows, columns, leading), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(made, BatchCount, &count, 4), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(made, BatchStride, &stride, 8), CUBLAS_STATUS_SUCCESS);
    layouts.push_back(made);
    return made;
  }
  template <class Value> void set(int attribute, Value value) {
    fine(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
  }
  template <class Value> cublasStatus_t prefer(int attribute, Value value) {
    return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
  }
  /// What the heuristics offer for the layouts.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates() {
    std::vector<cublasLtMatmulHeuristicResult_t> made(8);
    int count = 0;
    status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, c, preference, 8, made.data(), &count);
    made.resize(count);
    return made;
  }
  /// Takes the last one, which needs no alignment.
  cublasStatus_t multiply(CUdeviceptr onA, CUdeviceptr onB, CUdeviceptr onC, CUdeviceptr onD,
                          float beta = 0) {
    std::vector<cublasLtMatmulHeuristicResult_t> all = candidates();
    return all.empty() ? status : multiplyBy(all.back(), onA, onB, onC, onD, beta);
  }
  cublasStatus_t multiplyBy(const cublasLtMatmulHeuristicResult_t &chosen, CUdeviceptr onA, CUdeviceptr onB,
                            CUdeviceptr onC, CUdeviceptr onD, float beta = 0, size_t workspaceBytes = 0) {
    float alpha = 1;
    auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void *>(address); };
    return cublasLtMatmul(handle, operation, &alpha, pointer(onA), a, pointer(onB), b, &beta, pointer(onC), c,
                          pointer(onD), c, &chosen.algo, workspaceBytes ? pointer(onC) : nullptr,
                          workspaceBytes, stream);
  }
  CUdeviceptr room(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  CUdeviceptr upload(const std::vector<float> &values) {
    CUdeviceptr address = room(values.size() * 4);
    EXPECT_EQ(cuMemcpyHtoD_v2(address, values.data(), values.size() * 4), CUDA_SUCCESS);
    return address;
  }
  std::vector<float> download(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS) << softDeviceFault();
    EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), address, count * 4), CUDA_SUCCESS) << softDeviceFault();
    return values;
  }
  CUdeviceptr ones() { return upload(std::vector<float>(64, 1)); }

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts;
  CUstream stream = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
};
} // namespace

TEST_F(ProductCalls, ColumnsTransposesBatchesAndAdding) {
  // [[1, 3, 5], [2, 4, 6]] in columns of 3, transposed, twice with a matrix that is there once.
  CUdeviceptr onA = upload({1, 3, 5, 9, 2, 4, 6, 9, -1, -3, -5, 9, -2, -4, -6}), onB = upload({1, 10, 100}),
              onD = upload({1, 2, 7, 3, 4});
  int32_t transposed = 1;
  fine(cublasLtMatmulDescSetAttribute(operation, TransposeA, &transposed, 4));
  a = layout(CUDA_R_32F, 3, 2, 4, 2, 8);
  b = layout(CUDA_R_32F, 3, 1, 3, 2, 0);
  c = layout(CUDA_R_32F, 2, 1, 2, 2, 3);
  fine(multiply(onA, onB, onD, onD, 1));
  EXPECT_EQ(download(onD, 5), std::vector<float>({532, 644, 7, -528, -638}));
}

TEST_F(ProductCalls, ARecordedProductIsDoneWithEachLaunch) {
  CUdeviceptr onA = ones(), onB = ones(), onD = ones();
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  fine(multiply(onA, onB, onD, onD, 1));
  CUgraph graph;
  CUgraphExec executable;
  ok(cuStreamEndCapture(stream, &graph));
  ok(cuGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 3; ++i)
    ok(cuGraphLaunch(executable, stream));
  EXPECT_EQ(download(onD, 64), std::vector<float>(64, 25));
  ok(cuGraphExecDestroy(executable));
  ok(cuGraphDestroy(graph));
}

TEST_F(ProductCalls, AMissingWaitIsFoundUnderEverySeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    begin(seed);
    CUdeviceptr onA = ones(), onB = ones(), onD = room(256);
    CUstream other;
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    fine(multiply(onA, onB, 0, onD));
    ok(cuMemsetD8Async(onA, 0, 4, other));
    cuStreamSynchronize(other);
    faults("no order between a product of 8x8x8 (columns) and a fill, which touch the same bytes");
  }
}

TEST_F(ProductCalls, AccessesAreChecked) {
  const std::string product = "a product of 8x8x8 (columns)";
  fine(multiply(ones(), room(256), 0, room(256)));
  faults(product + ": a read of 256 bytes reads what nobody wrote");
  begin(1);
  // What is stored to needs no value, what is added to does.
  CUdeviceptr onD = room(256);
  fine(multiply(ones(), ones(), onD, onD));
  EXPECT_EQ(download(onD, 64), std::vector<float>(64, 8));
  fine(multiply(ones(), ones(), room(256), room(256), 1));
  faults(product + ": a read of 256 bytes reads what nobody wrote");
  begin(1);
  fine(multiply(ones(), ones(), 0, room(252)));
  faults(product + ": a write of 256 bytes reaches 4 bytes past the end of an allocation of 252");
  begin(1);
  std::vector<float> host(64, 1);
  fine(multiply(reinterpret_cast<CUdeviceptr>(host.data()), ones(), 0, room(256)));
  faults(product + ": a read of 256 bytes at an address that is not allocated");
  begin(1);
  CUdeviceptr both = upload(std::vector<float>(128, 1));
  fine(multiply(both, ones(), 0, both + 252));
  faults(product + " writes bytes that it also reads elsewhere or writes twice");
  begin(1);
  a = b = layout(CUDA_R_32F, 8, 8, 8, 2, 64), c = layout(CUDA_R_32F, 8, 8, 8, 2, 63);
  both = upload(std::vector<float>(128, 1));
  fine(multiply(both, both, 0, room(1024)));
  faults(product + " writes bytes that it also reads elsewhere or writes twice");
}

TEST_F(ProductCalls, WhatTheLibraryRefuses) {
  CUdeviceptr onA = ones();
  cublasLtMatrixLayout_t whole = c;
  auto refused = [&](cublasLtMatrixLayout_t other, cublasStatus_t expected, const std::string &text) {
    c = other;
    refuses(multiply(onA, onA, 0, onA), expected, text);
    c = whole;
  };
  refused(layout(CUDA_R_32F, 8, 8, 7), CUBLAS_STATUS_INVALID_VALUE,
          "a leading dimension of 7, expected at least 8");
  refused(layout(CUDA_R_32F, 8, 9, 8), CUBLAS_STATUS_INVALID_VALUE,
          "the matrices do not fit for a product of 8x9x8");
  refused(layout(CUDA_R_32F, 8, 8, 8, 2), CUBLAS_STATUS_INVALID_VALUE, "a batch of 1, expected 2");
  refused(layout(3, 8, 8, 8), CUBLAS_STATUS_NOT_SUPPORTED, "the software device does not multiply type 3");
  refused(layout(CUDA_R_16BF, 8, 8, 8), CUBLAS_STATUS_NOT_SUPPORTED,
          "types 0, 0 and 14 with compute type 68 and scale type 0");
  cublasLtMatmulDesc_t half;
  refuses(cublasLtMatmulDescCreate(&half, 64, 2), CUBLAS_STATUS_NOT_SUPPORTED,
          "the software device does not have compute type 64");

  fine(prefer(MaxWorkspace, uint64_t(1) << 20));
  fine(prefer(Reductions, uint32_t(2)));
  std::vector<cublasLtMatmulHeuristicResult_t> all = candidates();
  ASSERT_EQ(all.size(), 5u);
  refuses(multiplyBy(all[0], onA, onA, onA, onA, 0, 4095), CUBLAS_STATUS_INVALID_VALUE,
          "a workspace of 4095 bytes, expected at least 4096");
  refuses(multiplyBy(all[1], onA, onA, onA, onA, 0, 4096), CUBLAS_STATUS_NOT_SUPPORTED,
          "the software device does not add up pieces of a contraction");
  refuses(multiplyBy(all[2], onA + 4, onA, onA, onA), CUBLAS_STATUS_INVALID_VALUE,
          "A begins at an address that is no multiple of the 16 bytes of algorithm 66");
  refuses(multiplyBy({}, onA, onA, onA, onA), CUBLAS_STATUS_INVALID_VALUE,
          "this algorithm was not initialized");
  refuses(multiplyBy(all[2], onA, 0, onA, onA), CUBLAS_STATUS_INVALID_VALUE,
          "a place of the product is null");
  a = layout(CUDA_R_32F, 8, 8, 9);
  cublasLtMatmulHeuristicResult_t result;
  refuses(cublasLtMatmulAlgoCheck(handle, operation, a, b, c, c, &all[2].algo, &result),
          CUBLAS_STATUS_NOT_SUPPORTED,
          "algorithm 66 takes lines and matrices that begin at multiples of 16 bytes");
}

TEST_F(ProductCalls, EpiloguesTakeAndGiveWhatTheySay) {
  // Sums of 8 and a bias of each row; GELU's operand in lines of 16; its slope at 0 is a half.
  std::vector<float> bias = {-8, -7, 0, 1, 2, 3, 4, 100};
  CUdeviceptr onBias = upload(bias), onAux = upload(std::vector<float>(128, 7)), onD = room(256);
  set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
  set(BiasPointer, onBias);
  set(AuxPointer, onAux);
  set(AuxLeading, int64_t(16));
  fine(multiply(ones(), ones(), 0, onD));
  std::vector<float> result = download(onD, 64), aux = download(onAux, 128);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(aux[i / 8 * 16 + i % 8], 8 + bias[i % 8]);
    EXPECT_EQ(aux[i / 8 * 16 + 8 + i % 8], 7);
  }
  EXPECT_EQ(result[0], 0);
  EXPECT_NEAR(result[1], 0.841192f, 1e-6);
  EXPECT_EQ(result[7], 108);
  set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_BIAS));
  fine(multiply(ones(), ones(), 0, onD));
  EXPECT_EQ(download(onD, 2), std::vector<float>({0, 1}));
  set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_DGELU));
  set(AuxPointer, upload(std::vector<float>(128, 0)));
  fine(multiply(ones(), ones(), 0, onD));
  EXPECT_EQ(download(onD, 64), std::vector<float>(64, 4));
}

TEST_F(ProductCalls, WhatEpiloguesTouchIsOrderedAndChecked) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    begin(seed);
    CUdeviceptr onBias = upload(std::vector<float>(8, 1));
    CUstream other;
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_BIAS));
    set(BiasPointer, onBias);
    fine(multiply(ones(), ones(), 0, room(256)));
    ok(cuMemsetD8Async(onBias, 0, 4, other));
    cuStreamSynchronize(other);
    faults("no order between a product of 8x8x8 (columns) and a fill, which touch the same bytes");
  }
  begin(1);
  set(BiasPointer, room(28));
  fine(multiply(ones(), ones(), 0, room(256)));
  faults(
      "a product of 8x8x8 (columns): a read of 32 bytes reaches 4 bytes past the end of an allocation of 28");
}

TEST_F(ProductCalls, WhatEpiloguesAreRefused) {
  CUdeviceptr onA = ones(), onBias = ones();
  auto refused = [&](cublasStatus_t expected, const std::string &text) {
    refuses(multiply(onA, onA, 0, onA), expected, text);
  };
  set(Epilogue, uint32_t(512));
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "the software device does not have epilogue 512");
  set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_BIAS));
  refused(CUBLAS_STATUS_INVALID_VALUE, "epilogue 4 has no bias");
  set(BiasPointer, onBias + 2);
  refused(CUBLAS_STATUS_INVALID_VALUE, "epilogue 4 has a bias that is not aligned as its type");
  // Heuristics go by the alignment of its place; a call is refused with less than its algorithm takes.
  set(BiasPointer, onBias + 4);
  EXPECT_EQ(candidates().size(), 2u);
  set(BiasPointer, onBias);
  std::vector<cublasLtMatmulHeuristicResult_t> all = candidates();
  ASSERT_EQ(all.size(), 3u);
  set(BiasPointer, onBias + 4);
  refuses(multiplyBy(all[0], onA, onA, onA, room(256)), CUBLAS_STATUS_INVALID_VALUE,
          "the bias begins at an address that is no multiple of the 16 bytes of algorithm 66");
  set(Epilogue, uint32_t(CUBLASLT_EPILOGUE_DGELU));
  refused(CUBLAS_STATUS_INVALID_VALUE, "epilogue 192 has no auxiliary matrix");
  set(AuxPointer, onBias);
  for (int64_t leading : {0, 12}) {
    set(AuxLeading, leading);
    refused(CUBLAS_STATUS_INVALID_VALUE, "epilogue 192 has an auxiliary matrix with a leading dimension of " +
                                             std::to_string(leading) +
                                             ", expected a multiple of 8 of at least 8");
  }
  set(AuxLeading, int64_t(8));
  a = b = c = layout(CUDA_R_32F, 8, 8, 8, 2, 64);
  refused(CUBLAS_STATUS_NOT_SUPPORTED,
          "the software device has epilogue 192 for single matrices of at most 32 bits");
}

TEST_F(ProductCalls, AttributesAndObjectsAreChecked) {
  refuses(prefer(MaxWorkspace, uint32_t(0)), CUBLAS_STATUS_INVALID_VALUE,
          "attribute 1 of preferences has 4 bytes, expected 8");
  refuses(prefer(AlignmentA + 5, uint32_t(0)), CUBLAS_STATUS_INVALID_VALUE,
          "the software device does not have attribute 10 of preferences");
  int64_t value = 1;
  refuses(cublasLtMatrixLayoutSetAttribute(a, 7, &value, 8), CUBLAS_STATUS_INVALID_VALUE,
          "the software device does not have attribute 7 of layouts");
  refuses(cublasLtMatmulDescSetAttribute(operation, 9, &value, 4), CUBLAS_STATUS_INVALID_VALUE,
          "the software device does not have attribute 9 of operations");
  value = 2;
  refuses(cublasLtMatmulDescSetAttribute(operation, TransposeA, &value, 4), CUBLAS_STATUS_NOT_SUPPORTED,
          "the software device does not have transpose 2");
  cublasLtMatrixLayout_t gone = layouts.back();
  layouts.pop_back();
  fine(cublasLtMatrixLayoutDestroy(gone));
  refuses(cublasLtMatrixLayoutDestroy(gone), CUBLAS_STATUS_INVALID_VALUE, "this is no layout");
  ok(cuCtxSetCurrent(nullptr));
  cublasLtHandle_t none;
  refuses(cublasLtCreate(&none), CUBLAS_STATUS_NOT_INITIALIZED, "no context is current in this thread");
}

TEST_F(ProductCalls, OperandsAreRoundedToTf32WhereThatIsAskedFor) {
  // 1 + 2^-10 stays, half of that goes up, and what is below is cut.
  const float step = 0x1p-10f, kept[] = {1, 1 + step, 1 + step, 1};
  std::vector<float> values(64, 0), unit(64, 0);
  const float given[] = {1, 1 + step, 1 + step / 2, 1 + step / 4};
  for (int i = 0; i < 4; ++i)
    values[i] = given[i];
  for (int i = 0; i < 8; ++i)
    unit[9 * i] = 1;
  for (int compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32}) {
    fine(cublasLtMatmulDescDestroy(operation));
    fine(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F));
    CUdeviceptr onD = room(256);
    fine(multiplyBy(candidates().front(), upload(values), upload(unit), 0, onD));
    std::vector<float> made = download(onD, 64);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(made[i], compute == CUBLAS_COMPUTE_32F ? given[i] : kept[i]) << i;
  }
  a = b = layout(CUDA_R_16BF, 8, 8, 8);
  CUdeviceptr onA = ones();
  refuses(multiply(onA, onA, 0, room(256)), CUBLAS_STATUS_NOT_SUPPORTED,
          "types 14, 14 and 0 with compute type 77 and scale type 0");
}

TEST_F(ProductCalls, AlgorithmsAddInTheirOrders) {
  // 8 x 8 sums of 64: the smaller a group, the later 1 is lost beside 2^24.
  std::vector<float> values(512, 1);
  for (int column = 0; column < 8; ++column)
    values[column] = 1 << 24;
  a = layout(CUDA_R_32F, 8, 64, 8), b = layout(CUDA_R_32F, 64, 8, 64);
  CUdeviceptr onA = upload(values), onB = upload(std::vector<float>(512, 1)), onD = room(256);
  std::vector<std::vector<float>> found;
  for (const cublasLtMatmulHeuristicResult_t &one : candidates()) {
    if (one.workspaceSize)
      continue;
    fine(multiplyBy(one, onA, onB, 0, onD));
    found.push_back(download(onD, 64));
    EXPECT_EQ(found.back(), std::vector<float>(64, found.back()[0]));
  }
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0][0], (1 << 24) + 48);
  EXPECT_EQ(found[1][0], (1 << 24) + 56);
  EXPECT_EQ(found[2][0], 1 << 24);
}
