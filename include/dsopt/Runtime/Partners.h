//===- Partners.h - which ranks talk to which -------------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_PARTNERS_H
#define DSOPT_RUNTIME_PARTNERS_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Program.h"

#include <vector>

namespace dsopt::runtime {

/// The members that exchanges and agreements of a communicator send this rank's records to or bring it
/// others' from; each of them has this rank among its own.
std::vector<int> agreementPartners(const Communicator &group);

/// The ranks that rank `rank` of the program ever talks to, ascending: rank 0, its `partners` in agreements,
/// the members of its collectives, and the other ends of what it sends and receives.
std::vector<int> peersOf(const Program &program, int rank,
                         std::vector<int> (*partners)(const Communicator &) = agreementPartners);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_PARTNERS_H
