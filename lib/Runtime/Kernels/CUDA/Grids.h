//===- Grids.h - blocks for the routines' kernels ---------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRIDS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRIDS_H

#include "Kernels/CUDA/Driver.h"
#include "dsopt/Runtime/ABI.h"

namespace dsopt::runtime::cuda {

/// Blocks that each take so many of the elements.
inline int64_t blocksFor(int64_t elements, int64_t each) { return (elements + each - 1) / each; }

/// What kernels' names have for an element type.
inline std::string suffixOf(int64_t type) {
  return type == DSOPT_BF16 ? "bf16" : type == DSOPT_F16 ? "f16" : "f32";
}

/// Launches a kernel of the routines, if there is anything to do.
template <typename... Arguments>
void launchBlocks(Device &device, StreamHandle stream, const std::string &kernel, int64_t blocks,
                  int64_t threads, Arguments... arguments) {
  if (blocks > 0)
    launch(stream, device.find(kernel), blocks, threads, 0, arguments...);
}

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRIDS_H
