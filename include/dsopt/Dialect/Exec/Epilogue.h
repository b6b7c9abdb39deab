//===- Epilogue.h - exec.gemm_epilogue ----------------------*- C++ -*-===//
//
// Products with an epilogue, and what they share with exec.gemm.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_EPILOGUE_H
#define DSOPT_DIALECT_EXEC_EPILOGUE_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Epilogues.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecEpilogueOps.h.inc"

namespace dsopt::exec {
/// Of a product's operands: `packed` can stand for b, which is one matrix.
llvm::LogicalResult verifyPackedB(mlir::Operation *product, mlir::Value packed, mlir::Value b);
} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_EPILOGUE_H
