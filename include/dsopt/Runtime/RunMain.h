//===- RunMain.h - main() of every trained program --------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_RUNMAIN_H
#define DSOPT_RUNTIME_RUNMAIN_H

#include <string>

namespace dsopt::runtime {

/// Runs the program that is appended to this executable, or the one named first on
/// the command line. Returns the exit status of CONTRACT section 7; prints at most
/// one error message over all ranks.
int runMain(int argc, char **argv);

/// -check: reads all of a checkpoint, or of those in a folder, and prints a line for each. The exit status.
int checkCheckpoints(const std::string &path);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_RUNMAIN_H
