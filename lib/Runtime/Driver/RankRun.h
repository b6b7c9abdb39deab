//===- RankRun.h - one rank from its engine to its exit status --*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H
#define DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H

#include "Compare.h"
#include "ProgramObject.h"
#include "RunSettings.h"
#include "Saving.h"
#include "Signals.h"
#include "dsopt/Runtime/Data.h"

#include <atomic>

namespace dsopt::runtime {

/// What rank 0 tells the launcher that forked it.
struct Board {
  std::atomic<int> logOpen{0};   ///< the log has begun, and has no end yet
  std::atomic<int64_t> steps{0}; ///< that are done
};

/// What is known before the ranks start; equal in all of them.
struct Run {
  ProgramObject &object;
  RunSettings settings;
  DataSource &data;
  DataSource *evalData = nullptr;         ///< null: the loss is measured on nothing
  std::vector<Note> notes;                ///< what rank 0 says first
  std::unique_ptr<SaveFolder> saveFolder; ///< of rank 0 and its launcher; null without -save
  std::shared_ptr<Comparison> comparison; ///< of rank 0 with -compare, else null
  Board *board = nullptr; ///< of a launcher that writes what the log of a failed run ends with
  const Program &program() const { return object.program; }
};

/// Trains (or with -eval evaluates), logs and saves. Returns StatusOk or StatusInterrupted; throws Error.
int runRank(Run &run, Engine &engine, char *arena);

/// "dsopt: error: ..." on standard error.
void printError(const std::string &message);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H
