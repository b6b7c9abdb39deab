//===- AttentionBf16.cu - attention of bf16 by matrix instructions --------===//

#include "AttentionForward.h"

ATTENTION(bf16, 64)
ATTENTION(bf16, 128)
