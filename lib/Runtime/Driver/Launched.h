//===- Launched.h - one rank of those that a launcher started ---*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_LAUNCHED_H
#define DSOPT_LIB_RUNTIME_DRIVER_LAUNCHED_H

#include "RankRun.h"

namespace dsopt::runtime {

/// An Error unless the launcher started as many ranks as the program has.
void checkWorldSize(const Program &program, const Launch &launch);

/// Joins the other ranks, runs this one and leaves the process with its status. Errors are said, told to the
/// others and thrown.
[[noreturn]] void runLaunched(Run &run);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_LAUNCHED_H
