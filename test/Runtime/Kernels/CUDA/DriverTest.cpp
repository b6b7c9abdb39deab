//===- DriverTest.cpp - what is said of the driver's calls -----------------===//

#include "Kernels/CUDA/Driver.h"

#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::cuda;

namespace {
/// "1: what is wrong", with the status.
template <typename Body> std::string failureOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return std::to_string(error.status) + ": " + error.what();
  }
  return "";
}
} // namespace

TEST(Driver, FailuresNameTheCallAndWhatTheDriverSays) {
  const Driver &driver = Driver::get();
  EXPECT_EQ(driver.describe(2), "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(driver.describe(123456), "error 123456");
  EXPECT_EQ(failureOf([] { DeviceKind kind(99); }).find("2: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE ("), 0u);
  Device device(0);
  EXPECT_EQ(failureOf([&] { device.load("no image"); }).find("2: cuModuleLoadData: CUDA_ERROR_INVALID_"), 0u);
  EXPECT_EQ(failureOf([&] { device.find("nobody"); }), "1: no image of the device has the kernel 'nobody'");
}

TEST(Driver, DevicesAreKnownBeforeTheyAreStarted) {
  DeviceKind kind(0);
  Device device(0);
  EXPECT_EQ(kind.arch, device.architecture());
  EXPECT_EQ(kind.name, device.name());
  EXPECT_GE(kind.arch, 80);
}
