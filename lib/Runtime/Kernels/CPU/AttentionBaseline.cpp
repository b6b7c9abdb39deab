//===- AttentionBaseline.cpp - attention for the baseline of the target ---===//

#define DSOPT_LANES 4
#define DSOPT_VECTORS 2
#define DSOPT_KERNELS kAttentionBaseline
#include "Kernels/CPU/AttentionTiles.inc"
