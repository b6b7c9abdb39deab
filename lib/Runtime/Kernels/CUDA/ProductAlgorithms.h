//===- ProductAlgorithms.h - which algorithm a product takes ----*- C++ -*-===//
//
// One algorithm a shape, and every call of that shape takes it: the order of a sum is the
// algorithm's, so the bits of a product are those of its shape.
//
// The numbers of cuBLASLt's algorithms mean something else in each of its versions and on
// each architecture, so no table of them holds. The library's own heuristics choose, which
// are a function of what they are asked. They are asked with what is the same in every
// layout of ranks, and in every part as in the whole: the whole's extents, transposes,
// types and epilogue, and the alignment of its matrices' lines, of matrices that lie one line behind the
// other. Where the matrices of a call really lie is not asked for. Only algorithms that add
// a contraction up in one piece come into question (no split-K, no reduction), and that
// need no workspace. So the bits are those of the library's version and of the kind of GPU:
// its architecture and its number of multiprocessors.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTALGORITHMS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTALGORITHMS_H

#include "Kernels/CUDA/CublasLt.h"
#include "dsopt/Runtime/ABI.h"

#include <cstring>
#include <map>

namespace dsopt::runtime::cuda {

int64_t bytesOfElement(int64_t type);

/// What the choice depends on. Ordered in some way, as keys are.
struct ProductShape {
  int64_t m, n, k, batch;
  int64_t transposeA, transposeB, typeAB, typeC;
  int64_t isTf32;                             ///< f32 operands may be rounded to tf32
  int64_t alignmentA, alignmentB, alignmentC; ///< bytes that lines and matrices begin at multiples of
  int64_t epilogue = kLtNoEpilogue;           ///< an LtEpilogue

  bool operator<(const ProductShape &other) const { return std::memcmp(this, &other, sizeof(other)) < 0; }
  /// "2 of 64x32x16 TN (bf16 to f32, aligned to 16, 16 and 8 bytes)"; "tf32" for what is rounded to it;
  /// "64x32x16 TN with bias (...)".
  std::string text() const;
};

/// A batch of products as the library is called for it; rows are contiguous, as in dsopt_gemm.
struct ProductCall {
  int64_t m, n, k;
  int64_t transposeA, transposeB, typeAB, typeC, isTf32;
  int64_t lda, ldb, ldc;
  int64_t count, strideA, strideB, strideC;
  int64_t epilogue = kLtNoEpilogue; ///< an LtEpilogue

  bool operator<(const ProductCall &other) const { return std::memcmp(this, &other, sizeof(other)) < 0; }
};

/// What epilogues take lies at multiples of it; algorithms are asked for by it, not by real places.
inline constexpr int64_t kEpilogueAlignment = 16;

/// The same as the library's objects. Its matrices have contiguous columns, so that it multiplies the
/// transposed matrices, which are the same bytes: its first operand is our second one.
struct CallObjects {
  explicit CallObjects(const ProductCall &call);
  Operation operation;
  Layout first, second, result;
};

/// An algorithm and how messages name it.
struct Algorithm {
  LtAlgorithm configured;
  std::string text; ///< "algorithm 66 (tile 20, stages 12, ...)"
};

class ProductAlgorithms {
public:
  /// For a device's architecture, as sm_90 names it.
  ProductAlgorithms(LtHandle handle, int architecture) : handle(handle), architecture(architecture) {}

  /// An Error of status 2 where the library has none.
  const Algorithm &choose(const ProductShape &shape);
  /// An Error of status 2 unless a call may be made with the algorithm of its shape.
  void check(const ProductShape &shape, const Algorithm &algorithm, const CallObjects &call) const;

private:
  LtHandle handle;
  int architecture;
  std::map<ProductShape, Algorithm> chosen;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTALGORITHMS_H
