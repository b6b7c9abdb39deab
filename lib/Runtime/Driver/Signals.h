//===- Signals.h - what signals that stop a run do --------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_SIGNALS_H
#define DSOPT_LIB_RUNTIME_DRIVER_SIGNALS_H

#include "dsopt/Runtime/Session.h"

#include <vector>

namespace dsopt::runtime {

enum class OnSignal {
  Leave,        ///< ends at once: there is no step to finish yet
  Stop,         ///< finishes the step; a launcher counts
  StopThenLeave ///< the first finishes the step, a second one ends at once, unless all is done
};
void installSignals(OnSignal what);
/// SIGTERM, SIGINT, SIGUSR1, and SIGHUP of a terminal that goes, unless whoever started this ignores it
/// (nohup).
const std::vector<int> &stopSignals();

/// As if a signal had come: finishes the step.
void requestStop();
/// Whether one of them has come.
bool stopRequested();

/// The session that hears of it, and the engine whose peers do, while this lives.
struct ActiveRun {
  ActiveRun(Session &session, Engine &engine);
  ~ActiveRun();
  ActiveRun(const ActiveRun &) = delete;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_SIGNALS_H
