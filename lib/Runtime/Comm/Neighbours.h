//===- Neighbours.h - an engine whose ranks see each other's memory -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_NEIGHBOURS_H
#define DSOPT_LIB_RUNTIME_COMM_NEIGHBOURS_H

#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

/// What `SharedGroup::join` gives: operations over several hosts are built on its windows.
class Neighbours : public Engine {
public:
  /// Shows `bytes` of this rank's arena to the members: a collective of `group`.
  virtual void show(int slot, const Communicator &group, const void *memory, int64_t bytes) = 0;
  /// What a member shows in the slot's collective, null before it does.
  virtual const char *shown(int slot, int member) = 0;
  /// This rank has read all it needs: the slot is complete once all members have.
  virtual void doneReading(int slot) = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_NEIGHBOURS_H
