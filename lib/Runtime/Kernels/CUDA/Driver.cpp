//===- Driver.cpp - the CUDA driver, opened at run time --------------------===//

#include "Kernels/CUDA/Driver.h"
#include "Kernels/CUDA/LibraryFile.h"
#include "dsopt/Runtime/Process.h"

namespace dsopt::runtime::cuda {

static std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

static Driver open() {
  LibraryFile library({"libcuda.so.1"});
  if (!library.isOpen())
    throw Error(StatusFailure, "no CUDA driver: " + library.reasons() +
                                   "; the program needs a machine with an NVIDIA GPU and driver " +
                                   versionText(kOldestDriver) + " or newer");
  Driver driver;
#define DSOPT_FIND(name, parameters) library.find(driver.name, #name);
  DSOPT_CUDA_DRIVER(DSOPT_FIND)
#undef DSOPT_FIND
  int version = 0;
  if (driver.cuDriverGetVersion)
    driver.cuDriverGetVersion(&version);
  library.expect(version >= kOldestDriver, "the CUDA driver", versionText(version),
                 versionText(kOldestDriver));
  SignalsHeld held; // by the threads that the driver starts
  Result started = driver.cuInit(0);
  int devices = 0;
  if (started == kSuccess)
    started = driver.cuDeviceGetCount(&devices);
  if (started == kNoDevice || (started == kSuccess && devices == 0))
    throw Error(StatusFailure, "the CUDA driver finds no device (CUDA_VISIBLE_DEVICES hides those that it "
                               "does not name)");
  if (started != kSuccess)
    throw Error(StatusFailure, "the CUDA driver, version " + versionText(version) +
                                   ", does not start: " + driver.describe(started));
  return driver;
}

const Driver &Driver::get() {
  static const Driver driver = open();
  return driver;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  if (!name)
    return "error " + std::to_string(result);
  return name + (text ? " (" + std::string(text) + ")" : "");
}

void Driver::fail(Result result, const char *call) const {
  throw Failure(std::string(call) + ": " + describe(result));
}

bool Event::isReached() const {
  Result result = Driver::get().cuEventQuery(handle);
  if (result == kNotReady)
    return false;
  Driver::get().check(result, "cuEventQuery");
  return true;
}

static int attributeOf(DeviceNumber device, DeviceAttribute which) {
  int value = 0;
  DSOPT_CUDA(cuDeviceGetAttribute, &value, which, device);
  return value;
}

DeviceKind::DeviceKind(int ordinal) {
  DSOPT_CUDA(cuDeviceGet, &device, ordinal);
  arch = 10 * attributeOf(device, kComputeCapabilityMajor) + attributeOf(device, kComputeCapabilityMinor);
  char text[256] = {};
  DSOPT_CUDA(cuDeviceGetName, text, sizeof(text), device);
  name = text;
}

Device::Device(int ordinal) : kind(ordinal) {
  DSOPT_CUDA(cuDevicePrimaryCtxRetain, &context, kind.device);
  use();
  processors = attributeOf(kind.device, kMultiprocessorCount);
  size_t total = 0;
  DSOPT_CUDA(cuDeviceTotalMem_v2, &total, kind.device);
  memory = static_cast<int64_t>(total);
}

Device::~Device() {
  const Driver &driver = Driver::get();
  for (Module module : modules)
    driver.cuModuleUnload(module);
  driver.cuDevicePrimaryCtxRelease_v2(kind.device);
}

Uuid Device::uuid() const {
  Uuid own;
  DSOPT_CUDA(cuDeviceGetUuid_v2, &own, kind.device);
  return own;
}

int64_t Device::freeBytes() const {
  size_t left = 0, total = 0;
  DSOPT_CUDA(cuMemGetInfo_v2, &left, &total);
  return static_cast<int64_t>(left);
}

void Device::load(const void *image) {
  Module module;
  DSOPT_CUDA(cuModuleLoadData, &module, image);
  modules.push_back(module);
}

Function Device::find(const std::string &kernel) {
  auto found = known.find(kernel);
  if (found != known.end())
    return found->second;
  const Driver &driver = Driver::get();
  for (Module module : modules) {
    Function function = nullptr;
    Result result = driver.cuModuleGetFunction(&function, module, kernel.c_str());
    if (result == kNotFound)
      continue;
    driver.check(result, "cuModuleGetFunction");
    return known[kernel] = function;
  }
  throw Error(StatusInput, "no image of the device has the kernel '" + kernel + "'");
}

} // namespace dsopt::runtime::cuda
