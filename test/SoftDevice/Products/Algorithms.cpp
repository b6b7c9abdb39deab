//===- Algorithms.cpp - what the library offers for a product -------------===//
//
// Algorithms differ in the order of their sums, so that who takes another one for a part
// than for the whole, or for one rank than for another, gets other bits. Heuristics go by
// the extents, as the library's do, and begin with what few callers want.
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace softdevice {

static constexpr uint32_t kMagic = 0x50524f44;
/// Multiplications of which units: plain ones, or tensor cores with tf32 operands.
static constexpr uint64_t kPlain = 0x08'02'01, kTensor = 0x02'02'02, kTf32 = 0x04'02'02, kDouble = 0x10'04'01;
enum Id : int32_t { kSimple = 1, kTiled = 66, kBuffered = 71, kShortened = 80 };
static constexpr int kOldestBf16 = 80;

bool isShortened(const Configured &algorithm) { return algorithm.id == kShortened; }

Configured configuredOf(const cublasLtMatmulAlgo_t *algo) {
  Configured configured;
  expect(algo != nullptr, CUBLAS_STATUS_NOT_SUPPORTED,
         "without an algorithm the library chooses one by itself, which the software device does not");
  std::memcpy(&configured, algo, sizeof(configured));
  expect(configured.magic == kMagic, CUBLAS_STATUS_INVALID_VALUE, "this algorithm was not initialized");
  return configured;
}

Product productOf(Objects &objects, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  Product p = {known(objects.operations, operation, "operation"),
               known(objects.layouts, a, "layout"),
               known(objects.layouts, b, "layout"),
               known(objects.layouts, c, "layout"),
               known(objects.layouts, d, "layout"),
               0,
               0,
               0};
  auto invalid = [](bool holds, const std::string &text) {
    expect(holds, CUBLAS_STATUS_INVALID_VALUE, text);
  };
  auto number = [](int64_t value) { return std::to_string(value); };
  bool ta = p.operation->transposeA, tb = p.operation->transposeB;
  p.m = static_cast<int64_t>(d->rows), p.n = static_cast<int64_t>(d->columns);
  p.k = static_cast<int64_t>(ta ? a->rows : a->columns);
  invalid(p.m == static_cast<int64_t>(ta ? a->columns : a->rows) &&
              p.n == static_cast<int64_t>(tb ? b->rows : b->columns) &&
              p.k == static_cast<int64_t>(tb ? b->columns : b->rows),
          "the matrices do not fit for a product of " + number(p.m) + "x" + number(p.n) + "x" + number(p.k));
  invalid(p.m > 0 && p.n > 0 && p.k > 0, "a matrix has no elements");
  invalid(c->rows == d->rows && c->columns == d->columns && c->leading == d->leading && c->type == d->type &&
              c->stride == d->stride,
          "C and D do not lie alike");
  for (const softLayout *one : {p.a, p.b, p.c, p.d}) {
    bytesOfType(one->type);
    invalid(one->leading >= static_cast<int64_t>(one->rows),
            "a leading dimension of " + number(one->leading) + ", expected at least " +
                number(static_cast<int64_t>(one->rows)));
    invalid(one->count == d->count && one->count > 0,
            "a batch of " + number(one->count) + ", expected " + number(d->count));
    expect(std::max({static_cast<int64_t>(one->rows), static_cast<int64_t>(one->columns), one->leading}) <=
               INT32_MAX,
           CUBLAS_STATUS_NOT_SUPPORTED, "extents and leading dimensions have 32 bits");
    expect(one->count <= 65535, CUBLAS_STATUS_NOT_SUPPORTED,
           "a batch of " + number(one->count) + ", expected at most 65535");
  }
  bool isDouble = a->type == CUDA_R_64F, isNarrow = a->type == CUDA_R_16F || a->type == CUDA_R_16BF;
  expect(a->type == b->type && (d->type == a->type || (isNarrow && d->type == CUDA_R_32F)) &&
             (p.operation->compute == (isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
              (a->type == CUDA_R_32F && p.operation->compute == CUBLAS_COMPUTE_32F_FAST_TF32)) &&
             p.operation->scaleType == (isDouble ? CUDA_R_64F : CUDA_R_32F),
         CUBLAS_STATUS_NOT_SUPPORTED,
         "types " + number(a->type) + ", " + number(b->type) + " and " + number(d->type) +
             " with compute type " + number(p.operation->compute) + " and scale type " +
             number(p.operation->scaleType));
  checkEpilogue(p);
  return p;
}

void checkAlgorithm(const cublasLtContext &handle, const Product &product, const Configured &algorithm) {
  expect(product.a->type != CUDA_R_16BF || handle.arch >= kOldestBf16, CUBLAS_STATUS_ARCH_MISMATCH,
         "no bf16 on sm_" + std::to_string(handle.arch));
  expect(algorithm.type == product.a->type, CUBLAS_STATUS_INVALID_VALUE, "the algorithm is for other types");
  expect(algorithm.splitK == 1 && algorithm.reductionScheme == 0, CUBLAS_STATUS_NOT_SUPPORTED,
         "the software device does not add up pieces of a contraction");
  for (const softLayout *one : {product.a, product.b, product.d}) {
    uint64_t bytes = bytesOfType(one->type), unit = std::max<uint64_t>(algorithm.alignment, bytes);
    uint64_t stride = one->count > 1 ? one->stride * bytes : 0;
    expect(one->leading * bytes % unit == 0 && stride % unit == 0, CUBLAS_STATUS_NOT_SUPPORTED,
           "algorithm " + std::to_string(algorithm.id) +
               " takes lines and matrices that begin at multiples of " + std::to_string(unit) + " bytes");
  }
}

/// What there is for a product, the best first.
static std::vector<Configured> candidatesOf(const Product &product, const softPreference &preference) {
  uint32_t type = product.a->type;
  std::vector<Configured> made;
  auto add = [&](int32_t id, uint32_t tile, int32_t group, uint32_t alignment) -> Configured & {
    made.push_back({kMagic, id, tile, 1, 0, 0, 0, 0, 0, 0, type, group, alignment, 0});
    return made.back();
  };
  // The library's heuristics may look at anything that layouts say, and at the epilogue.
  bool isLarge =
      product.m * product.n >= 64 * 64 && product.d->leading < product.m + 64 && !hasEpilogue(product);
  const char *shortens = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (product.operation->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
      (type == CUDA_R_32F && shortens && *shortens == '1'))
    add(kShortened, 20, 8, 16);
  if (type != CUDA_R_64F) {
    add(kBuffered, 20, 64, 16).workspaceBytes = 1 << 12;
    // Reductions have no epilogues.
    Configured &split = add(kTiled, 20, 32, 16);
    split.splitK = 2;
    split.reductionScheme = 2;
    split.workspaceBytes = 8 * product.m * product.n;
    add(kTiled, isLarge ? 20 : 15, isLarge ? 32 : 16, 16);
    add(kTiled, 15, isLarge ? 16 : 8, 4);
  }
  add(kSimple, 0, INT32_MAX, 1);
  auto isUnwanted = [&](const Configured &one) {
    const softOperation &operation = *product.operation;
    uint64_t places =
        (addsBias(operation) ? reinterpret_cast<uint64_t>(operation.bias) : 0) |
        (writesAux(operation) || readsAux(operation) ? reinterpret_cast<uint64_t>(operation.aux) : 0);
    if (places % one.alignment || (hasEpilogue(product) && one.splitK > 1))
      return true;
    uint32_t least = *std::min_element(preference.alignments, preference.alignments + 4);
    return one.workspaceBytes > preference.workspaceBytes || one.alignment > least ||
           (one.reductionScheme & ~preference.reductionSchemes);
  };
  made.erase(std::remove_if(made.begin(), made.end(), isUnwanted), made.end());
  return made;
}

} // namespace softdevice

using namespace softdevice;

static void copyOut(const void *from, size_t size, void *value, size_t bytes, size_t *written) {
  expect(value && bytes == size, CUBLAS_STATUS_INVALID_VALUE,
         "an attribute of an algorithm has " + std::to_string(bytes) + " bytes, expected " +
             std::to_string(size));
  std::memcpy(value, from, size);
  if (written)
    *written = size;
}

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *results, int *count) {
  return callProducts([&](Objects &objects) {
    known(objects.handles, handle, "handle");
    expect(most > 0 && results && count, CUBLAS_STATUS_INVALID_VALUE, "no room for a result");
    *count = 0;
    Product product = productOf(objects, operation, a, b, c, d);
    for (const Configured &one :
         candidatesOf(product, *known(objects.preferences, preference, "preference"))) {
      if (*count == most)
        return;
      cublasLtMatmulHeuristicResult_t &result = results[(*count)++];
      result = {};
      std::memcpy(&result.algo, &one, sizeof(one));
      result.workspaceSize = one.workspaceBytes;
    }
  });
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
  return callProducts([&](Objects &objects) {
    Configured configured = configuredOf(algo);
    checkAlgorithm(*known(objects.handles, handle, "handle"), productOf(objects, operation, a, b, c, d),
                   configured);
    result->workspaceSize = configured.workspaceBytes;
    result->state = CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo, int attribute,
                                                    void *value, size_t bytes, size_t *written) {
  return callProducts([&](Objects &) {
    Configured c = configuredOf(algo);
    const void *fields[] = {&c.id,           &c.tile,   &c.splitK,     &c.reductionScheme, &c.swizzle,
                            &c.customOption, &c.stages, &c.innerShape, &c.clusterShape};
    expect(attribute >= 0 && attribute < 9, CUBLAS_STATUS_INVALID_VALUE,
           "the software device does not have configuration attribute " + std::to_string(attribute));
    copyOut(fields[attribute], attribute >= 7 ? 2 : 4, value, bytes, written);
  });
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo, int attribute, void *value,
                                                 size_t bytes, size_t *written) {
  return callProducts([&](Objects &) {
    Configured configured = configuredOf(algo);
    expect(attribute == 15, CUBLAS_STATUS_INVALID_VALUE,
           "the software device does not have capability " + std::to_string(attribute));
    uint64_t flags = configured.id == kShortened                                       ? kTf32
                     : configured.type == CUDA_R_16BF || configured.type == CUDA_R_16F ? kTensor
                     : configured.type == CUDA_R_64F                                   ? kDouble
                                                                                       : kPlain;
    copyOut(&flags, 8, value, bytes, written);
  });
}
}
