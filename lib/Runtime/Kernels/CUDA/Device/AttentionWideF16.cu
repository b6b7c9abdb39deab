//===- AttentionWideF16.cu - attention of f16 with heads above 128 --------===//

#include "AttentionTiledForward.h"

ATTENTION(f16, f16, 2)
