//===- Epilogue.h - what products with an epilogue are told -----*- C -*-===//
//
// The descriptor that generated code hands to dsopt_rt_gemm_epilogue, and what a product
// must be like to have one. Both sides of the ABI include this.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_EPILOGUE_H
#define DSOPT_RUNTIME_EPILOGUE_H

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What becomes of the sums `s = op(a) * op(b)`, which are fp32, before they are rounded to c's type: with a
/// bias of c's columns `s + bias`, or GELU of that, by its tanh approximation; or `s` times GELU's slope at
/// another matrix.
enum { DSOPT_EPILOGUE_BIAS = 0, DSOPT_EPILOGUE_BIAS_GELU = 1, DSOPT_EPILOGUE_GELU_GRAD = 2 };

/// What the columns are a multiple of where GELU's operand is kept, or given for its slope.
enum { DSOPT_EPILOGUE_COLUMNS = 8 };

/// A product of two matrices (a batch of one), whose contraction is added up in one piece
/// (dsopt_device_product_has_chunks).
typedef struct dsopt_gemm_epilogue {
  dsopt_gemm product;
  int64_t kind;
} dsopt_gemm_epilogue;

/// A product on a device: `c = epilogue(op(a) * op(b), given)`. `given`, of c's type, is the bias, or GELU's
/// operand. GELU's operand is written to `kept` unless that is null. Both lie at multiples of 16 bytes, as
/// matrices with rows of n elements. The host has none: kernels do it there.
void dsopt_rt_gemm_epilogue(dsopt_rt *rt, const dsopt_gemm_epilogue *product, const void *a, const void *b,
                            const void *given, void *kept, void *c);

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_EPILOGUE_H
