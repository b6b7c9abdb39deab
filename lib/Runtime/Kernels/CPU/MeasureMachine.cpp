//===- MeasureMachine.cpp - what this machine's memory can do --------------===//
//
// The limit that a report compares with, measured with the rank's threads in
// the run that it describes.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Fastest.h"
#include "Kernels/CPU/Runtime.h"

#include <sys/mman.h>

namespace dsopt::runtime {

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

} // namespace dsopt::runtime
