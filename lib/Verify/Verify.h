//===- Verify.h - the parts of verify-exec ----------------------*- C++ -*-===//
#ifndef DSOPT_LIB_VERIFY_VERIFY_H
#define DSOPT_LIB_VERIFY_VERIFY_H

#include "dsopt/Analysis/Exec/Lifetimes.h"

namespace dsopt {

/// Checks one program by itself: addresses, order of conflicting accesses, values
/// read and written, bytes shared, collectives.
llvm::LogicalResult verifyProgram(exec::ProgramOp program, LifeAnalysis &lives);

/// Checks that what one program reads was wholly written, and that what it writes is read.
llvm::LogicalResult verifyValues(exec::ProgramOp program, const ProgramLife &life, AccessAnalysis &analysis);

/// Checks that buffers lie in the planned memories of a program, those alive together apart.
llvm::LogicalResult verifyArena(exec::ProgramOp program, const ProgramLife &life);

/// Checks the programs of a step or an evaluation together: each phase of each block once on each
/// micro-batch, in the order that gradients need; each trained bucket with one norm and one update.
llvm::LogicalResult verifyCompleteness(mlir::ModuleOp module, llvm::ArrayRef<exec::ProgramOp> programs,
                                       AccessAnalysis &analysis);

/// Checks the programs against each other: transfers, collectives, deadlock.
llvm::LogicalResult verifyPositions(llvm::ArrayRef<exec::ProgramOp> programs, exec::Members &members);

/// Checks that the options say no other layout than the programs of a step or evaluation have.
llvm::LogicalResult verifyOptions(mlir::ModuleOp module, llvm::ArrayRef<exec::ProgramOp> programs);

} // namespace dsopt

#endif // DSOPT_LIB_VERIFY_VERIFY_H
