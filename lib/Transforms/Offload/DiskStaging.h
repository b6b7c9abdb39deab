//===- DiskStaging.h - what passes between disk and host --------*- C++ -*-===//
//
// What lies on disk is brought to the host's memory and taken back in parts: one is
// read while another is used and a third one is written.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_OFFLOAD_DISKSTAGING_H
#define DSOPT_LIB_TRANSFORMS_OFFLOAD_DISKSTAGING_H

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"

#include "llvm/Support/MathExtras.h"

namespace dsopt {

/// Parts on their way at once.
inline constexpr int64_t kStagedOnDisk = 3;

/// So many elements, and what keeps the bytes of those behind them a multiple of the disk's alignment,
/// whatever the type.
inline int64_t alignedOnDisk(int64_t elements) { return llvm::alignTo(elements, exec::kDiskAlignment / 2); }

/// Elements of a part where a rank has at most `most` of a bucket (-sub-group-size; by default 4 Mi, or a
/// 16th of the largest bucket: programs grow with the number of parts).
inline int64_t elementsOfPart(mlir::ModuleOp module, int64_t most) {
  int64_t byDefault = std::max<int64_t>(1 << 22, llvm::divideCeil(most, 16));
  int64_t group = std::max<int64_t>(options::sub_group_size(module).value_or(byDefault), 1);
  return alignedOnDisk(std::min(most, group));
}

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_OFFLOAD_DISKSTAGING_H
