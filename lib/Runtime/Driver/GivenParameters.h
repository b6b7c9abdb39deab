//===- GivenParameters.h - what a run gives of its parameters ---*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_GIVENPARAMETERS_H
#define DSOPT_LIB_RUNTIME_DRIVER_GIVENPARAMETERS_H

#include "RankRun.h"

namespace dsopt::runtime {

/// At a run's end (collective): hands the parameters to everything that wants them, on the rank that
/// `writes`; the hash if it was wanted.
std::string giveParameters(Run &run, Session &session, bool writes);

/// The weights as they are now, in the types in which they are trained (collective).
void writeWeights(Run &run, Session &session, const std::string &file, bool writes);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_GIVENPARAMETERS_H
