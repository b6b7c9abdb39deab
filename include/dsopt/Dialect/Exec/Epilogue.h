//===- Epilogue.h - exec.gemm_epilogue ----------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_EXEC_EPILOGUE_H
#define DSOPT_DIALECT_EXEC_EPILOGUE_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Epilogues.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecEpilogueOps.h.inc"


#endif // DSOPT_DIALECT_EXEC_EPILOGUE_H
