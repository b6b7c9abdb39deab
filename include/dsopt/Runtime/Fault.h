//===- Fault.h - faults on purpose ------------------------------*- C++ -*-===//
//
// Named points of a run at which tests let a rank die, stop, fail or go slowly, and
// the same for the calls of System.h. What strikes is said by `DSOPT_FAULT`, a list
// of faults with `;` between them, each
//
//   PLACE[,rank=R][,step=S][,nth=N]:WHAT
//
//   PLACE   a point ("save.manifest"), a call of System.h ("pwrite"), or an action
//           ("action=gather b3")
//   rank    only on this rank; a launcher is rank -1. Everywhere without it.
//   step    only in this step of the run
//   nth     the N-th time (1: the first, which is what counts without it; 0: always)
//   WHAT    kill, stop=MS (SIGSTOP, continued after so long; 0: never), exit=STATUS,
//           delay=MS, error=ENOSPC (calls alone), short (a call takes or gives half
//           of what it was asked), flip (one bit of what is read or written)
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_FAULT_H
#define DSOPT_RUNTIME_FAULT_H

#include <atomic>

namespace dsopt::runtime::fault {

/// Whether DSOPT_FAULT asks for anything.
extern std::atomic<bool> active;

void strike(const char *point);

/// The run has come to this point; points are listed in Points.def.
inline void point(const char *name) {
  if (active.load(std::memory_order_relaxed))
    strike(name);
}

/// Whose faults are meant from here on, and in which step.
void setRank(int rank);
void setStep(long step);

} // namespace dsopt::runtime::fault

#endif // DSOPT_RUNTIME_FAULT_H
