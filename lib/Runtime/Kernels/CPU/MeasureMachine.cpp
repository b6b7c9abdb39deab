//===- MeasureMachine.cpp - what this machine's memory and library can do --===//
//
// The limits that a report compares with, measured with the rank's threads in
// the run that it describes.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Element.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <sys/mman.h>

namespace dsopt::runtime {

using Clock = std::chrono::steady_clock;

namespace {
/// Memory of its own for a measurement, on huge pages where there are any.
class Scratch {
public:
  explicit Scratch(int64_t bytes) : bytes(bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      return;
    madvise(mapped, bytes, MADV_HUGEPAGE);
    data = static_cast<char *>(mapped);
  }
  ~Scratch() {
    if (data)
      munmap(data, bytes);
  }
  Scratch(const Scratch &) = delete;

  int64_t bytes;
  char *data = nullptr;
};

/// The least seconds of a few runs, after one that touches everything.
template <typename Body> double fastest(int runs, Body body) {
  double least = 0;
  for (int run = 0; run <= runs; ++run) {
    auto start = Clock::now();
    body();
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run == 1 || (run > 1 && seconds < least))
      least = seconds;
  }
  return least;
}
} // namespace

double measureBandwidth(ThreadPool &pool) {
  constexpr int64_t kElements = 16 << 20; // an array is 64 MB: larger than caches
  Scratch memory(3 * kElements * sizeof(float));
  if (!memory.data)
    return 0;
  auto *a = reinterpret_cast<float *>(memory.data), *b = a + kElements, *c = b + kElements;
  double seconds = fastest(5, [&] {
    pool.split(0, kElements, 4096, [=](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        a[i] = b[i] + 3.0f * c[i];
    });
  });
  return static_cast<double>(memory.bytes) / seconds;
}

double measureProduct(ThreadPool &pool, int64_t type, const int64_t *shape) {
  int64_t batch = shape[0], m = shape[1], n = shape[2], k = shape[3],
          bytes = type == DSOPT_F64 ? 8 : bytesOf(Element(type));
  dsopt_gemm product{};
  product.m = m, product.n = n, product.k = k;
  product.transpose_a = shape[4], product.transpose_b = shape[5];
  product.lda = shape[4] ? m : k, product.ldb = shape[5] ? k : n, product.ldc = n;
  product.type_ab = product.type_c = type;
  std::fill_n(product.batch, DSOPT_BATCH_RANK, 1);
  int last = DSOPT_BATCH_RANK - 1;
  product.batch[last] = batch;
  product.stride_a[last] = m * k, product.stride_b[last] = k * n, product.stride_c[last] = m * n;
  Scratch memory(batch * (m * k + k * n + m * n) * bytes);
  if (!memory.data)
    return 0;
  // Ones: zeros and denormals may be faster or slower than what a step has.
  pool.split(0, memory.bytes / bytes, 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      if (bytes == 2)
        reinterpret_cast<uint16_t *>(memory.data)[i] = type == DSOPT_F16 ? 0x3c00 : 0x3f80;
      else if (bytes == 8)
        reinterpret_cast<double *>(memory.data)[i] = 1.0;
      else
        reinterpret_cast<float *>(memory.data)[i] = 1.0f;
    }
  });
  char *a = memory.data, *b = a + batch * m * k * bytes, *c = b + batch * k * n * bytes;
  auto rt = std::make_unique<dsopt_rt>();
  rt->pool = &pool;
  return fastest(3, [&] { dsopt_rt_gemm(rt.get(), &product, a, b, c, nullptr, 0); });
}

} // namespace dsopt::runtime
