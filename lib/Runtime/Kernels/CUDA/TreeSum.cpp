//===- TreeSum.cpp - parts of ranks added along the canonical tree --------===//

#include "Kernels/CUDA/TreeSum.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

/// Of a block, as the kernels have it; blocks of a multiprocessor, beside which computation goes on.
static constexpr int64_t kThreads = 256, kBlocksOfProcessor = 8;

TreeSum::TreeSum(Device &device)
    : mostBlocks(kBlocksOfProcessor * device.multiprocessors()), f32(device.find("dsopt_tree_sum_f32")),
      bf16(device.find("dsopt_tree_sum_bf16")), f16(device.find("dsopt_tree_sum_f16")) {}

void TreeSum::launch(StreamHandle stream, Element type, const TreeParts &parts, void *target,
                     int64_t elements, bool accumulate) const {
  if (elements == 0)
    return;
  int64_t blocks = std::min((elements + kThreads - 1) / kThreads, mostBlocks);
  cuda::launch(stream,
               type == Element::BF16  ? bf16
               : type == Element::F16 ? f16
                                      : f32,
               blocks, kThreads, 0, target, parts.own, parts.others, parts.stride, parts.self, parts.count,
               elements, static_cast<int>(accumulate));
}

} // namespace dsopt::runtime::cuda
