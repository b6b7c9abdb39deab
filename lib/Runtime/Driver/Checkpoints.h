//===- Checkpoints.h - which checkpoint a run goes on from ------*- C++ -*-===//
//
// Rank 0 looks, all ranks open what it chose and see that it is the same one, and
// load it together. What cannot be read by any of them is left out under
// -resume=auto, and rank 0 looks again: the next older one, or a newer one if another
// run has written meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H
#define DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H

#include "RunSettings.h"
#include "dsopt/Runtime/Manifest.h"

#include <functional>
#include <optional>

namespace dsopt::runtime {

/// The checkpoint that rank 0 chose.
struct CheckpointChoice {
  std::string path;
  int64_t step = 0;
  std::string identity; ///< of its manifest
};

/// Where -resume looks, on rank 0.
class CheckpointSearch {
public:
  CheckpointSearch(const Program &program, const RunSettings &settings)
      : program(program), settings(settings) {}

  /// The newest checkpoint that looks whole and is not left out; none with `auto` where there is none. An
  /// Error of status 1 says what does not fit.
  std::optional<CheckpointChoice> choose();
  /// `choice` could not be read: an Error unless it is worth to look again.
  void cannotRead(const CheckpointChoice &choice, const Error &why);
  /// Those that could not be read.
  const std::vector<std::string> &leftOut() const { return paths; }
  const std::vector<std::string> &reasons() const { return texts; }

private:
  bool isAutomatic() const { return settings.resume == "auto"; }
  std::vector<std::string> candidates() const;
  const Program &program;
  const RunSettings &settings;
  std::vector<std::string> paths, texts;
  int vanished = 0;
};

/// Where a run went on.
struct Resumed {
  CheckpointChoice choice;
  Manifest manifest;
  std::vector<std::string> leftOut; ///< on rank 0: paths that could not be read
};

/// Collective: makes the session and gives it its values, from a checkpoint where -resume says so; `settings`
/// take from it what is not given. `chosen` sees on rank 0 what it goes on from before that is loaded (null:
/// from nothing). Lines for the user go to `notes`, of rank 0. What was resumed, if anything.
std::optional<Resumed> startTogether(const Program &program, RunSettings &settings, Engine &engine,
                                     std::vector<Note> &notes,
                                     const std::function<std::unique_ptr<Session>()> &makeSession,
                                     const std::function<void(const Resumed *)> &chosen,
                                     std::unique_ptr<Session> &session);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_CHECKPOINTS_H
