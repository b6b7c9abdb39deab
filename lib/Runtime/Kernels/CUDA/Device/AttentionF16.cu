//===- AttentionF16.cu - attention of f16 by matrix instructions ----------===//

#include "AttentionForward.h"

ATTENTION(f16, 64)
ATTENTION(f16, 128)
