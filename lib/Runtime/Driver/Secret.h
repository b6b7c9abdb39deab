//===- Secret.h - what ranks know each other by -----------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_SECRET_H
#define DSOPT_LIB_RUNTIME_DRIVER_SECRET_H

#include <string>

namespace dsopt::runtime {

/// The secret of DSOPT_SECRET, or in the file that DSOPT_SECRET_FILE names; empty without. An Error of status
/// 1 for one that is short or that others can read.
std::string readSecret();

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_SECRET_H
