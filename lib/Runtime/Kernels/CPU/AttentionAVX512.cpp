//===- AttentionAVX512.cpp - attention for AVX-512 ---===//

#define DSOPT_LANES 16
#define DSOPT_VECTORS 4
#define DSOPT_KERNELS kAttentionAVX512
#include "Kernels/CPU/AttentionTiles.inc"
