//===- AttentionAVX512BF16.cpp - attention in bf16 for AVX-512 BF16 ---===//

#define DSOPT_LANES 16
#define DSOPT_VECTORS 4
#define DSOPT_PAIRS
#define DSOPT_KERNELS kAttentionAVX512BF16
#include "Kernels/CPU/AttentionTiles.inc"
