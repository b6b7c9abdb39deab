//===- ProductsFixture.h - products and matrices on a device ----*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_CUDA_PRODUCTSFIXTURE_H
#define DSOPT_TEST_RUNTIME_KERNELS_CUDA_PRODUCTSFIXTURE_H

#include "Kernels/CUDA/Products.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"
#include "dsopt/Runtime/Error.h"

#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vector>

namespace dsopt::runtime::cuda {

/// Elements of one type, on the host.
struct Elements {
  int64_t type;
  std::vector<char> bytes;

  Elements(int64_t type, int64_t count) : type(type), bytes(count * bytesOfElement(type)) {}
  double get(int64_t at) const {
    if (type == DSOPT_F64)
      return reinterpret_cast<const double *>(bytes.data())[at];
    if (type == DSOPT_F32)
      return reinterpret_cast<const float *>(bytes.data())[at];
    if (type == DSOPT_F16)
      return reinterpret_cast<const _Float16 *>(bytes.data())[at];
    uint32_t bits = static_cast<uint32_t>(reinterpret_cast<const uint16_t *>(bytes.data())[at]) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  /// bf16 is cut: values that are tested have few bits.
  void set(int64_t at, double value) {
    float single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    if (type == DSOPT_F64)
      reinterpret_cast<double *>(bytes.data())[at] = value;
    else if (type == DSOPT_F32)
      reinterpret_cast<float *>(bytes.data())[at] = single;
    else if (type == DSOPT_F16)
      reinterpret_cast<_Float16 *>(bytes.data())[at] = static_cast<_Float16>(single);
    else
      reinterpret_cast<uint16_t *>(bytes.data())[at] = static_cast<uint16_t>(bits >> 16);
  }
};

/// Memory of the device.
class Buffer {
public:
  explicit Buffer(int64_t bytes) { DSOPT_CUDA(cuMemAlloc_v2, &address, static_cast<size_t>(bytes)); }
  Buffer(const Elements &elements, StreamHandle stream)
      : Buffer(static_cast<int64_t>(elements.bytes.size())) {
    DSOPT_CUDA(cuMemcpyHtoDAsync_v2, address, elements.bytes.data(), elements.bytes.size(), stream);
    DSOPT_CUDA(cuStreamSynchronize, stream);
  }
  ~Buffer() { Driver::get().cuMemFree_v2(address); }
  Buffer(const Buffer &) = delete;

  char *at(int64_t byte = 0) const { return reinterpret_cast<char *>(address + byte); }
  void read(Elements &to, StreamHandle stream) const {
    DSOPT_CUDA(cuMemcpyDtoHAsync_v2, to.bytes.data(), address, to.bytes.size(), stream);
    DSOPT_CUDA(cuStreamSynchronize, stream);
  }

private:
  Address address = 0;
};

/// A function that the software device's library has beside those of cuBLASLt; null on a GPU.
inline void *findInSoftLibrary(const char *name) {
  void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

struct ProductsTest : testing::Test {
  Device device{0};
  Products products{device};
  Stream stream;
};

/// Contiguous matrices.
inline dsopt_gemm denseProduct(int64_t m, int64_t n, int64_t k, int64_t ta, int64_t tb, int64_t typeAB,
                               int64_t typeC) {
  return {m, n, k, ta, tb, ta ? m : k, tb ? k : n, n, typeAB, typeC, {1, 1, 1, 1}, {}, {}, {}};
}

inline int64_t workspaceBytes(const dsopt_gemm_part &part) {
  const dsopt_gemm &p = part.product;
  return dsopt_device_product_workspace(p.m, p.ldc, part.k, p.type_c);
}
inline int64_t workspaceBytes(const dsopt_gemm &p) {
  return workspaceBytes(dsopt_gemm_part{p, p.m, p.n, p.k});
}

/// What an Error of status 2 says.
template <typename Work> std::string failureOf(const Work &work) {
  try {
    work();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusFailure);
    return error.what();
  }
  return "no error";
}

} // namespace dsopt::runtime::cuda

#endif // DSOPT_TEST_RUNTIME_KERNELS_CUDA_PRODUCTSFIXTURE_H
