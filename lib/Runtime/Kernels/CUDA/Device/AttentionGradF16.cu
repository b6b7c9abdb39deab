//===- AttentionGradF16.cu - its gradient of f16 by matrices --------------===//

#include "AttentionBackward.h"

GRADIENTS(f16, 64)
GRADIENTS(f16, 128)
