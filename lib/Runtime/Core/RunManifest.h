//===- RunManifest.h - what checkpoints say of a run ------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_RUNMANIFEST_H
#define DSOPT_LIB_RUNTIME_CORE_RUNMANIFEST_H

#include "dsopt/Runtime/Manifest.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// What every checkpoint of a run has: the facts of its program and options.
Manifest manifestOf(const Program &program, const RunOptions &options);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_RUNMANIFEST_H
