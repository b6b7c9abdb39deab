//===- RunMain.h - main() of every trained program --------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_RUNMAIN_H
#define DSOPT_RUNTIME_RUNMAIN_H

#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Launch.h"

#include <string>

namespace dsopt::runtime {

/// Runs the program that is appended to this executable, or the one named first on
/// the command line. Returns the exit status of CONTRACT section 7; prints at most
/// one error message over all ranks.
int runMain(int argc, char **argv);

/// -check: reads all of a checkpoint, or of those in a folder, and prints a line for each. The exit status.
int checkCheckpoints(const std::string &path);

/// Tells the other ranks of what keeps this one from joining them, so that none waits for it: rank 0 says it,
/// unless it `isSaid` here already. False if nobody has said it. Nothing is done where a launcher's ranks do
/// not meet at rank 0.
bool tellOthers(const Launch &launch, bool insecure, const Error &error, bool isSaid);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_RUNMAIN_H
