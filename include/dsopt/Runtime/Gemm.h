//===- Gemm.h - where products of matrices may be cut -----------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_GEMM_H
#define DSOPT_RUNTIME_GEMM_H

/// Elements of a contraction that are added at once where there are twice as many or more; where a product
/// may be cut. Result tiles begin at divisors of it.
#define DSOPT_GEMM_CHUNK INT64_C(2048)
/// What `ldc` is a multiple of, or not, in a part as in the whole: the library chooses its code by it.
#define DSOPT_GEMM_ALIGNMENT INT64_C(1024)

#endif // DSOPT_RUNTIME_GEMM_H
