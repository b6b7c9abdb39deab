//===- RankPlaces.h - where the ranks of this machine are -------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_RANKPLACES_H
#define DSOPT_LIB_RUNTIME_DRIVER_RANKPLACES_H

#include "dsopt/Runtime/Session.h"

#include <string>
#include <vector>

#include <sys/types.h>

namespace dsopt::runtime {

/// "in step 1, in 'block 0 F'" or "while it saves": where a rank is or was.
std::string describeWhere(const Program &program, const SharedGroup &group, int rank);

/// A rank that ended, with the status of waitpid, though it was not done.
std::string describeDeath(const Program &program, const SharedGroup &group, int rank, int waitStatus);

/// Ranks that do not wait for peers, or cannot notice that these have done their part: everybody waits for
/// them. `pids` are the ranks' processes.
std::vector<int> stuckRanks(const SharedGroup &group, const std::vector<pid_t> &pids);

/// Who waits where, and for whom.
std::string describeStall(const Program &program, const SharedGroup &group, const std::vector<pid_t> &pids);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_RANKPLACES_H
