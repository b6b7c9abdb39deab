//===- Meter.cpp - when a CUDA device did what ----------------------------===//

#include "Kernels/CUDA/Meter.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

static double elapsed(const Event &begin, const Event &end) {
  float milliseconds = 0;
  DSOPT_CUDA(cuEventElapsedTime, &milliseconds, begin, end);
  return milliseconds;
}

size_t Meter::mark() {
  if (used == events.size())
    events.emplace_back(kEventDefault);
  events[used].record(calls.currentStream());
  return used++;
}

double Meter::milliseconds(size_t begin, size_t end) { return elapsed(events[begin], events[end]); }

KernelFigures Meter::takeFigures() {
  const Algorithm *algorithm = calls.takeAlgorithm();
  const char *text = algorithm ? algorithm->text.c_str() : nullptr;
  Function kernel = calls.takeLaunched();
  if (!kernel)
    return {0, 0, 0, text};
  auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    DSOPT_CUDA(cuFuncGetAttribute, &value, which, kernel);
    return static_cast<int64_t>(value);
  };
  // The program's kernels have no arrays of their own: all that is local was spilled.
  return {attribute(kRegisters), attribute(kSharedSizeBytes), attribute(kLocalSizeBytes), text};
}

namespace {
/// Bytes of the device while they are measured.
struct Bytes {
  explicit Bytes(int64_t count) { DSOPT_CUDA(cuMemAlloc_v2, &address, std::max<int64_t>(count, 1)); }
  ~Bytes() { Driver::get().cuMemFree_v2(address); }
  Bytes(const Bytes &) = delete;
  Address address = 0;
};
} // namespace

double measureBandwidth(const Device &device) {
  constexpr int kRounds = 5;
  // More than caches hold, where there is room for all ranks that share the device.
  int64_t bytes = std::min<int64_t>(device.freeBytes() / 16, INT64_C(256) << 20);
  Bytes from(bytes), to(bytes);
  Stream stream;
  DSOPT_CUDA(cuMemsetD8Async, from.address, 0, bytes, stream);
  Event begin(kEventDefault), end(kEventDefault);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    begin.record(stream);
    DSOPT_CUDA(cuMemcpyDtoDAsync_v2, to.address, from.address, bytes, stream);
    end.record(stream);
    stream.synchronize();
    best = std::max(best, 2.0 * static_cast<double>(bytes) / (elapsed(begin, end) * 1e-3));
  }
  return best;
}

} // namespace dsopt::runtime::cuda
