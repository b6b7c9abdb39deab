//===- Objects.h - what the library's calls work on -------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_PRODUCTS_OBJECTS_H
#define DSOPT_TEST_SOFTDEVICE_PRODUCTS_OBJECTS_H

#include "Api.h"

#include <functional>
#include <mutex>
#include <set>
#include <string>

struct cublasLtContext {
  int arch; ///< of the device that was current
};
struct softOperation {
  int compute, scaleType;
  int32_t transposeA = 0, transposeB = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
  void *aux = nullptr;
  int64_t auxLeading = 0;
};
struct softLayout {
  uint32_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t count = 1;
  int64_t stride = 0;
};
struct softPreference {
  uint64_t workspaceBytes = 0;
  uint32_t reductionSchemes = 7;
  uint32_t alignments[4] = {256, 256, 256, 256}; ///< of A, B, C and D
};

namespace softdevice {

/// A call that fails: its status, with what is wrong for who looks.
struct ProductError {
  cublasStatus_t status;
  std::string text;
};

inline void expect(bool holds, cublasStatus_t status, const std::string &text) {
  if (!holds)
    throw ProductError{status, text};
}

/// What is open.
struct Objects {
  std::mutex mutex;
  std::string fault;
  std::set<const void *> handles, operations, layouts, preferences;
  static Objects &get();
};

template <typename Handle> Handle known(const std::set<const void *> &all, Handle one, const char *kind) {
  expect(all.count(one), CUBLAS_STATUS_INVALID_VALUE, std::string("this is no ") + kind);
  return one;
}

/// Every call: under a lock, with what goes wrong as its status.
cublasStatus_t callProducts(const std::function<void(Objects &)> &work);

/// Bytes of an element; throws for types that there are not.
uint64_t bytesOfType(uint32_t type);

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

/// What cublasLtMatmulAlgo_t holds.
struct Configured {
  uint32_t magic;
  int32_t id;
  uint32_t tile;
  int32_t splitK;
  uint32_t reductionScheme, swizzle, customOption, stages;
  uint16_t innerShape, clusterShape;
  uint32_t type;
  int32_t group;      ///< elements of a contraction that are added before their sum is
  uint32_t alignment; ///< of places, leading dimensions and strides, in bytes
  uint64_t workspaceBytes;
};
static_assert(sizeof(Configured) <= sizeof(cublasLtMatmulAlgo_t));

/// A product as its objects describe it: op(A) is m x k, op(B) k x n.
struct Product {
  const softOperation *operation;
  const softLayout *a, *b, *c, *d;
  int64_t m, n, k;
};

Product productOf(Objects &objects, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d);
Configured configuredOf(const cublasLtMatmulAlgo_t *algo);
/// Whether it rounds operands to tf32.
bool isShortened(const Configured &algorithm);
/// Throws where an algorithm does not do the product.
void checkAlgorithm(const cublasLtContext &handle, const Product &product, const Configured &algorithm);

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

bool hasEpilogue(const Product &product);
/// Whether a bias is added, and whether there is an auxiliary matrix: one that is written, or one that is
/// read.
bool addsBias(const softOperation &operation);
bool writesAux(const softOperation &operation);
bool readsAux(const softOperation &operation);
/// Throws where an epilogue is none of the library's, or is not told what it needs.
void checkEpilogue(const Product &product);

/// What becomes of a column's element before it is stored, by single precision.
struct EpilogueShape {
  uint32_t epilogue;
  uint32_t type; ///< of bias and auxiliary matrix
  int64_t auxLeading;
};
struct EpiloguePlaces {
  const char *bias;
  char *aux;
};
float finish(const EpilogueShape &shape, const EpiloguePlaces &places, int64_t row, int64_t column,
             float sum);

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// An element as it is stored.
float loadElement(const char *place, int64_t at, uint32_t type);
void storeElement(char *place, int64_t at, uint32_t type, float value);

/// Matrices with contiguous columns; a sum's order is the algorithm's alone.
struct SumShape {
  int64_t m, n, k;
  bool transposeA, transposeB;
  int64_t lda, ldb, ldc, ldd;
  uint32_t typeAB, typeC;
  int64_t group;
  bool rounds; ///< operands to tf32
  EpilogueShape epilogue;
};
/// D = epilogue(alpha A B + beta C); C is not read where beta is 0.
void multiply(const SumShape &shape, double alpha, const char *a, const char *b, double beta, const char *c,
              char *d, const EpiloguePlaces &places);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_PRODUCTS_OBJECTS_H
