//===- RankRun.h - one rank from its engine to its exit status --*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H
#define DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H

#include "Compare.h"
#include "ProgramObject.h"
#include "RunSettings.h"
#include "Saving.h"
#include "dsopt/Runtime/Data.h"

namespace dsopt::runtime {

/// What is known before the ranks start; equal in all of them.
struct Run {
  ProgramObject &object;
  RunSettings settings;
  DataSource &data;
  DataSource *evalData = nullptr;         ///< null: the loss is measured on nothing
  std::vector<Note> notes;                ///< what rank 0 says first
  SaveFolder *saveFolder = nullptr;       ///< of rank 0 and its launcher; null without -save
  std::shared_ptr<Comparison> comparison; ///< of rank 0 with -compare, else null
  const Program &program() const { return object.program; }
};

/// Trains (or with -eval evaluates), logs and saves. Returns StatusOk or StatusInterrupted; throws Error.
int runRank(Run &run, Engine &engine, char *arena);

/// Handles SIGTERM, SIGINT and SIGUSR1 from here on: the first finishes the step, a second one ends at
/// once. With `launcher` (its process id) only its signals count as a second one, and what a terminal
/// sends to all is left to it.
void installSignals(int launcher);
/// Whether one of them has come.
bool stopRequested();

/// "dsopt: error: ..." on standard error.
void printError(const std::string &message);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_RANKRUN_H
