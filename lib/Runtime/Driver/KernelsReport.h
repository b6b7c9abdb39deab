//===- KernelsReport.h - what -report=kernels prints ------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_KERNELSREPORT_H
#define DSOPT_LIB_RUNTIME_DRIVER_KERNELSREPORT_H

#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// The table of one rank's calls over `steps` steps that took `ms` in all, sorted by time.
std::string kernelsTable(const Program &program, const std::vector<CallRow> &rows,
                         const MachineLimits &limits, int64_t threads, double ms, int64_t steps);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_KERNELSREPORT_H
