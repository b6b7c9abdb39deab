//===- FrozenSteps.h - around an optimizer's freeze -------------*- C++ -*-===//
//
// What a session does of its own where an optimizer's variance freezes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_FROZENSTEPS_H
#define DSOPT_LIB_RUNTIME_CORE_FROZENSTEPS_H

#include "Core/Addresses.h"
#include "dsopt/Runtime/Manifest.h"

namespace dsopt::runtime {

/// What the next step is, behind `steps`, of which so many were applied; `isPadded`: something may lie
/// between parameters in what frozen steps exchange.
ListKind kindOfNext(const Program &program, int64_t steps, int64_t applied, bool isPadded);

/// Zeroes what lies between parameters in the variances of a position's frozen steps: elements with 0 take no
/// part in what ranks exchange, and steps before may have left anything there.
void clearPadding(const Program &program, const Position &position, const RankInfo &info,
                  const Addresses &addresses);

/// A checkpoint of another freeze is an Error once either has been passed: a variance that is frozen stays
/// so, and one that is not has not been for a while.
void checkFreeze(const Program &program, const std::string &checkpoint, const Manifest &manifest);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_FROZENSTEPS_H
