//===- Clones.h - functions for each instruction set ------------*- C++ -*-===//
//
// DSOPT_CLONES compiles a function several times; which runs is chosen by the
// machine. All have to give the same bits: no multiplication beside an addition,
// unless its file is compiled without contraction or its product is exact.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H

#ifdef DSOPT_CLONES
// Given by the build.
#elif defined(__x86_64__)
#define DSOPT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DSOPT_CLONES
#endif

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_CLONES_H
