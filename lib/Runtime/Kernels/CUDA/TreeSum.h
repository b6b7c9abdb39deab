//===- TreeSum.h - parts of ranks added along the canonical tree *- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_TREESUM_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_TREESUM_H

#include "Kernels/CUDA/Driver.h"
#include "dsopt/Runtime/Element.h"

namespace dsopt::runtime::cuda {

/// One part for each of `count` members: that of member `self` is `own`, that of another lies `stride`
/// elements times its place behind `others`. All addresses are the device's.
struct TreeParts {
  const void *own, *others;
  int64_t stride;
  int self, count;
};

class TreeSum {
public:
  /// The device has the routines' kernels.
  explicit TreeSum(Device &device);
  /// Puts on the stream what treeSum of the host computes, to the bit. `target` may be `own`.
  void launch(StreamHandle stream, Element type, const TreeParts &parts, void *target, int64_t elements,
              bool accumulate) const;

private:
  int64_t mostBlocks;
  Function f32, bf16, f16;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_TREESUM_H
