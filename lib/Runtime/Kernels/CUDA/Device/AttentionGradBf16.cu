//===- AttentionGradBf16.cu - its gradient of bf16 by matrices ------------===//

#include "AttentionBackward.h"

GRADIENTS(bf16, 64)
GRADIENTS(bf16, 128)
