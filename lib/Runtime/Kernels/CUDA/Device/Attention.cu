//===- Attention.cu - attention forward -----------------------------------===//

#include "AttentionTiledForward.h"

ATTENTION(f32, float, 1)
ATTENTION(f32, float, 2)
