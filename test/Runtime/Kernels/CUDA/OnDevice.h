//===- OnDevice.h - what the tests of a device's routines share -*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_CUDA_ONDEVICE_H
#define DSOPT_TEST_RUNTIME_KERNELS_CUDA_ONDEVICE_H

#include "../RandomNumbers.h"

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"
#include "Kernels/CUDA/Routines.h"
#include "dsopt/Runtime/RoutineImages.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <type_traits>
#include <vector>

namespace dsopt::runtime::cuda {

/// A device with the routines, a stream, and the host's routines beside them.
class OnDevice : public testing::Test {
protected:
  OnDevice() : pool(1, 0, prepareThread) {
    for (const RoutineImage &image : routineImages())
      device.load(image.ptx);
    rt.pool = &pool;
  }
  ~OnDevice() override {
    for (Address address : taken)
      Driver::get().cuMemFree_v2(address);
  }

  /// Bytes that nobody has written.
  template <typename T = void> T *room(int64_t bytes) {
    Address address = 0;
    DSOPT_CUDA(cuMemAlloc_v2, &address, bytes ? bytes : 1);
    taken.push_back(address);
    return reinterpret_cast<T *>(address);
  }
  /// As long as the device's copy is in use, `values` have to stay.
  template <typename T> T *upload(const std::vector<T> &values) {
    T *there = room<T>(values.size() * sizeof(T));
    if (!values.empty())
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(there), values.data(), values.size() * sizeof(T), stream);
    stream.synchronize();
    return there;
  }
  template <typename T> std::vector<T> download(const T *there, int64_t count) {
    std::vector<T> values(count);
    if (count)
      DSOPT_CUDA(cuMemcpyDtoHAsync_v2, values.data(), addressOf(there), count * sizeof(T), stream);
    stream.synchronize();
    return values;
  }

  template <typename T> static std::vector<T> stored(const std::vector<float> &values) {
    std::vector<T> result(values.size());
    convert(values.data(), result.data(), values.size());
    return result;
  }
  template <typename T> static std::vector<T> numbersAs(int64_t count, int seed, float scale = 1) {
    return stored<T>(randomNumbers(count, seed, scale));
  }
  static std::vector<float> widened(const std::vector<float> &values) { return values; }
  template <typename T> static std::vector<float> widened(const std::vector<T> &values) {
    std::vector<float> result(values.size());
    convert(values.data(), result.data(), values.size());
    return result;
  }
  template <typename T> static constexpr int64_t typeOf() {
    return std::is_same_v<T, uint16_t> ? DSOPT_BF16 : sizeof(T) == 2 ? DSOPT_F16 : DSOPT_F32;
  }

  Device device{0};
  Stream stream;
  ThreadPool pool;
  dsopt_rt rt;

private:
  std::vector<Address> taken;
};

/// Equal to the bit.
template <typename T> void expectSame(const std::vector<T> &got, const std::vector<T> &expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(T)), 0)
        << "element " << i << ": got " << static_cast<double>(got[i]) << ", expected "
        << static_cast<double>(expected[i]);
}

} // namespace dsopt::runtime::cuda

#endif // DSOPT_TEST_RUNTIME_KERNELS_CUDA_ONDEVICE_H
