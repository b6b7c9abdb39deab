//===- AttentionGradWideF16.cu - its gradient of f16, heads above 128 ------===//

#include "AttentionTiledBackward.h"

GRADIENTS(f16, f16, 2)
