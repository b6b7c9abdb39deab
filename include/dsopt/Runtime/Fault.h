//===- Fault.h - faults on purpose ------------------------------*- C++ -*-===//
//
// Named points of a run at which tests let a rank die, stop, fail or go slowly, and
// the same for the calls of System.h; both are listed in Points.def. What strikes is
// said by `DSOPT_FAULT`, a list of items with `;` between them, each a fault
//
//   PLACE[=DETAIL][,rank=R][,step=S][,nth=N|,from=N|,every=N]:WHAT
//
//   PLACE   a point ("save.manifest") or a call ("pwrite")
//   DETAIL  of a point that has one: "action=gather b3"
//   rank    only on this rank; a process that starts ranks is rank -1, also where it is
//           the only one. Everywhere without it.
//   step    only in this step of the run, or in what follows before the next one
//   nth     the N-th time (1 without it); from: the N-th and all later ones; every: each
//           N-th. Counted in each process since it became this rank.
//   WHAT    kill, exit=STATUS, signal=NAME (TERM), delay=MS, stop=MS (SIGSTOP, continued
//           after so long; 0: never);
//           of calls alone: error=NAME (ENOSPC), short (takes or gives half of what it was
//           asked, at least one byte), flip=BIT (of what is read or written, at most of its
//           first 4096 bytes), skip (says it was done and does nothing)
//
// or "hits=FILE", which gets a line for each fault that strikes:
//   CLOCK_MONOTONIC in ns, process, rank, step, the fault
// or "record=FILE", which gets all that is changed in files and folders (Record.h).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_FAULT_H
#define DSOPT_RUNTIME_FAULT_H

#include <atomic>

namespace dsopt::runtime::fault {

/// Whether DSOPT_FAULT asks for anything.
extern std::atomic<bool> active;

/// Takes DSOPT_FAULT over (once, before there are threads); an Error (1) names what is wrong in it.
void start();
/// The same from a text; what was there is forgotten.
void start(const char *text);

/// `detail` may be null. Allocates nothing.
void strike(const char *point, const char *detail);

/// The run has come to this point.
inline void point(const char *name, const char *detail = nullptr) {
  if (active.load(std::memory_order_relaxed))
    strike(name, detail);
}

/// Whose faults are meant from here on; counting begins anew if that is another rank than before.
void setRank(int rank);
/// In which step (-1: in none).
void setStep(long step);

} // namespace dsopt::runtime::fault

#endif // DSOPT_RUNTIME_FAULT_H
