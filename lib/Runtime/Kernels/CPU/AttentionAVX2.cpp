//===- AttentionAVX2.cpp - attention for AVX2 and FMA ---===//

#define DSOPT_LANES 8
#define DSOPT_VECTORS 2
#define DSOPT_KERNELS kAttentionAVX2
#include "Kernels/CPU/AttentionTiles.inc"
