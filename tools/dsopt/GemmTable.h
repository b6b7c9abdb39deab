//===- GemmTable.h - tables of products as JSON -----------------*- C++ -*-===//
//
// -tune writes them, -gemm-table reads them: for products of a shape how their kernel is
// cut, or that the library computes them, on one processor (exec.gemm_table).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_GEMMTABLE_H
#define DSOPT_TOOLS_DSOPT_GEMMTABLE_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Runtime/Options.h"

#include <vector>

namespace dsopt {

/// A choice, and what was measured when it was made: GFLOP/s of it, of the model's and of the library.
struct MeasuredChoice {
  exec::GemmChoiceAttr choice;
  double chosen = 0, model = 0, library = 0;
};

/// Reads a table; an Error of status 1 names line and column of what is wrong.
exec::GemmTableAttr readGemmTable(mlir::MLIRContext &context, const std::string &path);

/// Writes one for a processor.
void writeGemmTable(const std::string &path, TargetAttr target, llvm::ArrayRef<MeasuredChoice> choices);

/// Puts the table of -gemm-table into the module; an Error if it is for another processor than the module, or
/// if that is for a device or has its kernels already.
void setGemmTable(mlir::ModuleOp module, const runtime::ParsedOptions &options);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_GEMMTABLE_H
