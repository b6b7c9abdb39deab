//===- Clones.h - functions for each instruction set ------------*- C++ -*-===//
//
// DSOPT_CLONES, and for f16 DSOPT_HALF_CLONES, compiles a function several times;
// which runs is chosen by the machine. All have to give the same bits: no
// multiplication beside an addition, unless its file is compiled without contraction
// or its product is exact.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H

#ifdef DSOPT_CLONES
// Given by the build.
#define DSOPT_HALF_CLONES
#elif defined(__x86_64__)
#define DSOPT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
// AVX2 alone does not convert f16; with what comes with it everywhere it does.
#define DSOPT_HALF_CLONES __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define DSOPT_CLONES
#define DSOPT_HALF_CLONES
#endif

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H
