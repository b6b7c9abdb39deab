//===- AttentionGrad.cu - attention backward ------------------------------===//

#include "AttentionTiledBackward.h"

GRADIENTS(f32, float, 1)
GRADIENTS(f32, float, 2)
