//===- Partners.h - which ranks talk to which -------------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_PARTNERS_H
#define DSOPT_RUNTIME_PARTNERS_H

#include "dsopt/Runtime/Program.h"

#include <vector>

namespace dsopt::runtime {

/// The ranks that rank `rank` of the program ever talks to, ascending: rank 0, those that agreements and
/// exchanges go through, the members of its collectives, the other ends of what it sends and receives, and
/// those with which it shares pieces of checkpoints. Each of them names this rank as well, or is rank 0.
std::vector<int> peersOf(const Program &program, int rank);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_PARTNERS_H
