//===- NcclPlan.h - which communication goes by NCCL ------------*- C++ -*-===//
//
// Made from the program alone, equally on all ranks: a group of ranks for each
// communicator's collectives, and one for each direction between two ranks that send each
// other values, as operations of a group follow each other and those of two directions must
// not wait for each other. Agreements, and what lies in the host's memory at one of the
// members, stay with the host's engine.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_NCCLPLAN_H
#define DSOPT_LIB_RUNTIME_CORE_NCCLPLAN_H

#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

struct NcclPlan {
  /// Members of each group; all of one are equal, whichever rank asks.
  std::vector<std::vector<int>> groups;
  /// Of a rank's actions by list and index: the group, -1: the host's engine does it.
  static constexpr int kHost = -1;
  std::vector<std::vector<int>> groupOf;
};

/// An Error of status 1 where the members of a group would not do the same in the same order.
NcclPlan planNccl(const Program &program, int rank);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_NCCLPLAN_H
