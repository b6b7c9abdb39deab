//===- AttentionWideBf16.cu - attention of bf16 with heads above 128 ------===//

#include "AttentionTiledForward.h"

ATTENTION(bf16, bf16, 2)
