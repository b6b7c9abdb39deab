//===- Checkpoints.h - -save and -resume of a run ---------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H
#define DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H

#include "RunSettings.h"
#include "dsopt/Runtime/Manifest.h"

#include <optional>

namespace dsopt::runtime {

/// Where a run goes on.
struct Resumed {
  std::string checkpoint;
  Manifest manifest;
};

/// The checkpoint that -resume names, checked against the program; `settings` take from it what is not
/// given. None without -resume, or with `auto` before the first checkpoint. Lines for the user go to
/// `notes`. An Error of status 1 says what does not fit.
std::optional<Resumed> openCheckpoint(const Program &program, RunSettings &settings,
                                      std::vector<Note> &notes);

/// An Error of status 1 unless checkpoints can be written where -save says; clears what earlier runs
/// left incomplete.
void prepareSaving(const RunSettings &settings);

/// Whether one is due after `done` steps; `last`: no step follows.
bool savesAfter(const RunSettings &settings, int64_t done, bool last);

/// Collective: writes one and, on rank 0, removes the oldest beyond -save-keep.
void saveCheckpoint(const RunSettings &settings, Session &session, bool first);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H
