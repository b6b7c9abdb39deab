//===- ProductKernels.h - kernels of products as functions ------*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTKERNELS_H
#define DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTKERNELS_H

#include "dsopt/Dialect/Exec/Exec.h"

namespace dsopt {
/// The type of a product's kernel: its range's begin and end, then flat buffers of a, b, the addend (f32)
/// and the bias if there are such, c, and the flag if it accumulates; bf16 as its bits.
mlir::FunctionType typeOfProductKernel(exec::ProductAttr product);
} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTKERNELS_H
