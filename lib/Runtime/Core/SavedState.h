//===- SavedState.h - a run's state to and from a checkpoint ----*- C++ -*-===//
//
// Every rank writes its part of whole tensors into the same files, and reads its
// part of them, whatever layout wrote them. Files: Manifest.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H
#define DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H

#include "Core/Addresses.h"
#include "Core/ThreadPool.h"
#include "dsopt/Runtime/Manifest.h"

namespace dsopt::runtime {

/// The tensors of a checkpoint of this program: parameters under their names, then each one's optimizer
/// state ("w.m"), without places in files.
std::vector<Parameter> savedTensors(const Program &program);

/// Collective: writes the state to the new folder `checkpoint` and completes the manifest, whose facts are
/// given. The folder appears under its name when all of it is on disk. An Error of status 2 leaves nothing.
void saveState(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
               const std::string &checkpoint, Manifest &manifest);

/// Reads this rank's state; an Error of status 1 if the checkpoint is of another model or optimizer, or
/// damaged where this rank reads it.
void loadState(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool *pool,
               const std::string &checkpoint, const Manifest &manifest);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H
