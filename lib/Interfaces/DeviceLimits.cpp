//===- DeviceLimits.cpp - what GPUs can do at most ------------------------===//
//
// NVIDIA's data sheets: A100 (80 GB SXM), L40, H100 (SXM5), H200 (SXM) and HGX B200, figures
// without sparsity. Links are NVLink's, of the L40 PCIe's. What a multiprocessor holds: the CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability".
//
//===----------------------------------------------------------------------===//

#include "dsopt/Interfaces/DeviceLimits.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dsopt;

static constexpr double kTera = 1e12, kGiga = 1e9;
static constexpr int64_t kKilo = 1024;

static constexpr DeviceLimits kDevices[] = {
    {"A100", "sm_80", 108, 2.039 * kTera, 312 * kTera, 156 * kTera, 19.5 * kTera, 19.5 * kTera, 300 * kGiga,
     32 * kGiga, 64, 32, 164 * kKilo},
    {"L40", "sm_89", 142, 0.864 * kTera, 181 * kTera, 90.5 * kTera, 90.5 * kTera, 1.4 * kTera, 32 * kGiga,
     32 * kGiga, 48, 24, 100 * kKilo},
    {"H100", "sm_90", 132, 3.35 * kTera, 989 * kTera, 495 * kTera, 67 * kTera, 67 * kTera, 450 * kGiga,
     64 * kGiga, 64, 32, 228 * kKilo},
    {"H200", "sm_90", 132, 4.8 * kTera, 989 * kTera, 495 * kTera, 67 * kTera, 67 * kTera, 450 * kGiga,
     64 * kGiga, 64, 32, 228 * kKilo},
    {"B200", "sm_100", 148, 8.0 * kTera, 2250 * kTera, 1125 * kTera, 75 * kTera, 37 * kTera, 900 * kGiga,
     64 * kGiga, 64, 32, 228 * kKilo}};

double DeviceLimits::flopsPerSecond(Type type, bool isProduct) const {
  if (type.isF64())
    return fp64;
  return isProduct && (type.isBF16() || type.isF16()) ? half : fp32;
}

double DeviceLimits::limitSeconds(Type type, bool isProduct, double flops, double bytes) const {
  return std::max(flops / flopsPerSecond(type, isProduct), bytes / memory);
}

int64_t DeviceLimits::residentBlocks(int64_t threads, int64_t registers, int64_t sharedBytes) const {
  // Registers are given to warps by 256, shared memory to blocks by 128 bytes, of which the system keeps
  // 1024 of each.
  constexpr int64_t kWarp = 32, kRegisters = 65536, kRegistersAtOnce = 256, kSharedAtOnce = 128, kKept = 1024;
  int64_t warpsOfBlock = llvm::divideCeil(threads, kWarp);
  int64_t fits = std::min(blocks, warps / warpsOfBlock);
  if (registers > 0) {
    int64_t ofWarp = llvm::alignTo(registers * kWarp, kRegistersAtOnce);
    fits = std::min(fits, kRegisters / ofWarp / warpsOfBlock);
  }
  return std::min(fits, shared / int64_t(llvm::alignTo(sharedBytes + kKept, kSharedAtOnce)));
}

SmallVector<DeviceLimits, 2> dsopt::devicesOf(StringRef arch) {
  SmallVector<DeviceLimits, 2> found;
  for (const DeviceLimits &device : kDevices)
    if (arch.rtrim('a') == device.arch)
      found.push_back(device);
  return found;
}

std::optional<DeviceLimits> dsopt::deviceOf(TargetAttr target) {
  if (!target || target.getKind() != TargetKind::CUDA)
    return std::nullopt;
  SmallVector<DeviceLimits, 2> found = devicesOf(
      target.getArch().rsplit(',').second.empty() ? target.getArch() : target.getArch().rsplit(',').second);
  return found.empty() ? std::nullopt : std::optional(found.front());
}
