//===- LocalRanks.h - starts the ranks of this machine ----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_LOCALRANKS_H
#define DSOPT_LIB_RUNTIME_DRIVER_LOCALRANKS_H

#include "RankRun.h"

namespace dsopt::runtime {

/// Forks dp * pp ranks that meet in shared memory, waits for all of them and returns
/// the status to exit with. One rank runs in this process.
int runLocalRanks(Run &run);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_LOCALRANKS_H
