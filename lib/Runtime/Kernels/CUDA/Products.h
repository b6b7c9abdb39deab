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

namespace dsopt::runtime::cuda {

class Products {
public:
  /// An Error of status 2 where the device's architecture is too old or cuBLASLt is not there.
  explicit Products(Device &device);

  /// Bytes of scratch on the device that a product or part takes, at an address that is a multiple of 256: 0
  /// but where a bf16 result has a contraction in chunks, whose sums are rounded once. Products of two
  /// streams need two.
  static int64_t workspaceBytes(const dsopt_gemm_part &part);
  static int64_t workspaceBytes(const dsopt_gemm &product) {
    return workspaceBytes(dsopt_gemm_part{product, product.m, product.n, product.k});
  }

  /// As dsopt_rt_gemm and dsopt_rt_gemm_part, behind what the stream has.
  void multiply(StreamHandle stream, const dsopt_gemm &product, const void *a, const void *b, void *c,
                bool accumulate, void *workspace) {
    multiplyPart(stream, {product, product.m, product.n, product.k}, a, b, nullptr, c, accumulate, workspace);
  }
  void multiplyPart(StreamHandle stream, const dsopt_gemm_part &part, const void *a, const void *b,
                    const float *addend, void *c, bool accumulate, void *workspace);

  /// What multiplies, for logs: "cuBLASLt 13.1.0".
  std::string library() const { return "cuBLASLt " + CublasLt::get().version; }

private:
  struct Prepared {
    CallObjects objects;
    const Algorithm &algorithm;
  };
  void run(StreamHandle stream, const ProductShape &shape, const ProductCall &call, const void *a,
           const void *b, const void *addend, void *c, bool adds);
  void sumChunks(StreamHandle stream, const ProductShape &shape, ProductCall call, const char *a,
                 const char *b, const float *addend, void *c, bool accumulate);
  void roundInPieces(StreamHandle stream, const ProductShape &shape, const ProductCall &call, const char *a,
                     const char *b, const float *addend, char *c, bool accumulate, void *workspace);

  LtLibraryHandle handle;
  ProductAlgorithms algorithms;
  std::map<std::pair<ProductShape, ProductCall>, Prepared> prepared;
  Function round;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_PRODUCTS_H
