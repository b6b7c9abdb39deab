//===- AttentionGradWideBf16.cu - its gradient of bf16, heads above 128 ----===//

#include "AttentionTiledBackward.h"

GRADIENTS(bf16, bf16, 2)
