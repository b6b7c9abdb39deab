//===- Convolution.h - exec.convolution ----------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_EXEC_CONVOLUTION_H
#define DSOPT_DIALECT_EXEC_CONVOLUTION_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Convolutions.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecConvolutionOps.h.inc"

#endif // DSOPT_DIALECT_EXEC_CONVOLUTION_H
