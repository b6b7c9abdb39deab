//===- Products.h - matrix products on a device -----------------*- C++ -*-===//
//
// The products of ABI.h by cuBLASLt. The bits of a product are those of its extents, types
// and transposes (ProductAlgorithms.h); a part of a product has the bits of the whole,
// since it takes the whole's algorithm, begins where tiles do, and a long contraction is
// always added up in chunks, in order. Products of one device; of one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTS_H

#include "Kernels/CUDA/Driver.h"
#include "Kernels/CUDA/ProductAlgorithms.h"
#include "dsopt/Runtime/Epilogue.h"

#include <utility>

namespace dsopt::runtime::cuda {

class Products {
public:
  /// An Error of status 2 where the device's architecture is too old or cuBLASLt is not there. `mayRound`:
  /// operands of f32 products are rounded to tf32 where an algorithm does so.
  explicit Products(Device &device, bool mayRound = false);

  /// As dsopt_rt_gemm and dsopt_rt_gemm_part, behind what the stream has. Products of two streams have two
  /// workspaces.
  void multiply(StreamHandle stream, const dsopt_gemm &product, const void *a, const void *b, void *c,
                bool accumulate, void *workspace) {
    multiplyPart(stream, {product, product.m, product.n, product.k}, a, b, nullptr, c, accumulate, workspace);
  }
  void multiplyPart(StreamHandle stream, const dsopt_gemm_part &part, const void *a, const void *b,
                    const float *addend, void *c, bool accumulate, void *workspace);
  /// As dsopt_rt_gemm_epilogue.
  void multiplyEpilogue(StreamHandle stream, const dsopt_gemm_epilogue &product, const void *a, const void *b,
                        const void *given, void *kept, void *c);

  /// What multiplies, for logs: "cuBLASLt 13.1.0".
  std::string library() const { return "cuBLASLt " + CublasLt::get().version; }

  /// Of the product that was called last, null if none was since this was asked.
  const Algorithm *takeAlgorithm() { return std::exchange(called, nullptr); }

private:
  ProductShape shapeOf(const dsopt_gemm_part &part, const void *a, const void *b, const float *addend,
                       const void *c) const;
  struct Prepared {
    CallObjects objects;
    const Algorithm &algorithm;
  };
  Prepared &prepare(const ProductShape &shape, const ProductCall &call);
  void run(StreamHandle stream, const ProductShape &shape, const ProductCall &call, const void *a,
           const void *b, const void *addend, void *c, bool adds);
  void sumChunks(StreamHandle stream, const ProductShape &shape, ProductCall call, const char *a,
                 const char *b, const float *addend, void *c, bool accumulate);
  void roundInPieces(StreamHandle stream, const ProductShape &shape, const ProductCall &call, const char *a,
                     const char *b, const float *addend, char *c, bool accumulate, void *workspace);

  LtLibraryHandle handle;
  ProductAlgorithms algorithms;
  bool mayRound;
  std::map<std::pair<ProductShape, ProductCall>, Prepared> prepared;
  Function round;
  const Algorithm *called = nullptr;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTS_H
