//===- MemoryProfile.h - the device's bytes, run by run ---------*- C++ -*-===//
//
// What a program's buffers hold in the first memory, in the order in which actions are
// issued: what passes that move gathers know before memory is planned. What is still on its way
// takes more than that, which is the planner's to say.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_MEMORYPROFILE_H
#define DSOPT_ANALYSIS_EXEC_MEMORYPROFILE_H

#include "dsopt/Analysis/Exec/Accesses.h"

namespace dsopt {

struct MemoryProfile {
  /// Emits an error and fails where an action does not fit its segment.
  static mlir::FailureOr<MemoryProfile> compute(exec::ProgramOp program, AccessAnalysis &analysis);

  llvm::DenseMap<mlir::Operation *, int64_t> live; ///< by run
  int64_t peak = 0;                                ///< of all actions
};

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_MEMORYPROFILE_H
