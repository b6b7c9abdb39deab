//===- RunRecord.h - what a run is made of, to be compared ------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_RUNRECORD_H
#define DSOPT_LIB_RUNTIME_DRIVER_RUNRECORD_H

#include "RankRun.h"
#include "dsopt/Runtime/Record.h"

namespace dsopt::runtime {

/// The program, what this rank reads and how, and the options that all ranks must have alike.
Record recordOf(const Run &run);

/// Entries for the files that `option` names, by their sizes and samples of their bytes; `kind` is the
/// entries' first word.
void addFiles(Record &record, const std::string &kind, const std::string &option,
              const std::vector<std::string> &paths);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_RUNRECORD_H
