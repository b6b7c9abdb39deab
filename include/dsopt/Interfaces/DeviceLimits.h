//===- DeviceLimits.h - what GPUs can do at most ----------------*- C++ -*-===//
//
// One row for each GPU, from its maker's data sheets: what the plan predicts with, and what
// kernels are compared with where nothing runs.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_DEVICELIMITS_H
#define DSOPT_INTERFACES_DEVICELIMITS_H

#include "dsopt/Interfaces/Target.h"

namespace dsopt {

struct DeviceLimits {
  llvm::StringLiteral name, arch; ///< without the letter that an architecture may end with
  int64_t processors;             ///< streaming multiprocessors
  double memory;                  ///< bytes a second
  double half, tf32, fp32, fp64;  ///< flops a second: of dense matrices, fp32 without matrix units
  double links, host;             ///< bytes a second in one direction, to other GPUs and to the host
  int64_t warps, blocks, shared;  ///< that one multiprocessor holds; bytes of shared memory

  /// Flops a second with elements of that type. Kernels compute bf16 in fp32.
  double flopsPerSecond(mlir::Type type, bool isProduct) const;
  /// The time that the memory takes for the bytes or the multiprocessors for the flops, whichever is longer.
  double limitSeconds(mlir::Type type, bool isProduct, double flops, double bytes) const;
  /// Blocks of so many threads that a multiprocessor holds at once, by each thread's registers and each
  /// block's bytes of shared memory; 0 where not even one fits.
  int64_t residentBlocks(int64_t threads, int64_t registers, int64_t sharedBytes) const;
};

/// All of an architecture, in the order of the table: `sm_90a` has what `sm_90` has.
llvm::SmallVector<DeviceLimits, 2> devicesOf(llvm::StringRef arch);
/// The first of the target's last architecture, which plans are for; none for a CPU.
std::optional<DeviceLimits> deviceOf(TargetAttr target);

/// What predictions assume that kernels reach of a limit, and what starting one takes. Measured on an H200:
/// products of 8192^3 in bf16 reach 0.8 of it, copies 0.9.
inline constexpr double kReachedOfLimit = 0.8, kLaunchSeconds = 2e-6;

} // namespace dsopt

#endif // DSOPT_INTERFACES_DEVICELIMITS_H
