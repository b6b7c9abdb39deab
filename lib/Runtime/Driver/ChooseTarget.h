//===- ChooseTarget.h - which of an executable's programs runs --*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_CHOOSETARGET_H
#define DSOPT_LIB_RUNTIME_DRIVER_CHOOSETARGET_H

#include "ProgramObject.h"
#include "dsopt/Runtime/Data.h"
#include "dsopt/Runtime/Launch.h"

namespace dsopt::runtime {

/// Of the same program for a device and for the host the one that `runOn` names; if it is empty, the device's
/// where this machine has what it needs, else the host's, and a note that says which and why. One program has
/// to be what `runOn` names. Forks: before there are threads.
std::unique_ptr<ProgramObject> chooseTarget(std::vector<std::unique_ptr<ProgramObject>> objects,
                                            const std::string &runOn, const Launch &launch,
                                            std::vector<Note> &notes);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_CHOOSETARGET_H
