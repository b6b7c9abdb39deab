//===- State.h - what the driver's calls work on ----------------*- C++ -*-===//
//
// SOFT_DEVICE describes the devices: "devices=1,arch=90,memory=1073741824,seed=1,driver=13000"; each may be
// left out. With "issues=1" a process says how many calls have put something into its streams. A fault may
// be planted (Planted.h). One lock: calls of several threads follow each other.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_DRIVER_STATE_H
#define DSOPT_TEST_SOFTDEVICE_DRIVER_STATE_H

#include "Api.h"
#include "Machine/Program.h"
#include "Planted.h"
#include "Timeline.h"

#include <mutex>
#include <set>
#include <thread>

struct CUctx_st {
  int device;
};
struct CUfunc_st {
  std::shared_ptr<softdevice::Program> program;
  const softdevice::Kernel *kernel;
  CUctx_st *context;
  int64_t dynamicShared = 0; ///< the most that was allowed
};
struct CUmod_st {
  std::shared_ptr<softdevice::Program> program;
  CUctx_st *context;
  std::map<std::string, CUfunc_st> functions;
};

namespace softdevice {
/// What is recorded instead of done: nodes by what they come after.
struct Graph {
  struct Member {
    std::string what;
    Work work;
    std::vector<int> after;
    int stream;
  };
  std::vector<Member> members;
  bool isBroken = false;    ///< by a call that cannot be recorded
  std::thread::id recorder; ///< whose calls alone it refuses meanwhile; of no thread: everybody's
};
} // namespace softdevice

struct CUgraph_st {
  softdevice::Graph graph;
};
struct CUgraphExec_st {
  softdevice::Graph graph;
};
struct CUevent_st {
  softdevice::NodeRef node;
  std::shared_ptr<softdevice::Graph> capture; ///< where it was recorded, if not in a stream's work
  std::vector<int> members;
  bool isTimed = true;
};
struct CUstream_st {
  CUctx_st *context;
  int number = 0;         ///< the default stream's is 0
  bool isBlocking = true; ///< in order with the default stream
  softdevice::NodeRef last;
  std::vector<softdevice::NodeRef> waits;     ///< of the next node, too
  std::shared_ptr<softdevice::Graph> capture; ///< what its work is recorded in
  bool isOrigin = false;                      ///< of the capture
  std::vector<int> members;                   ///< what its next member comes after
};

namespace softdevice {

/// A call that fails: its status, with what is wrong for who looks.
struct CallError {
  CUresult status;
  std::string text;
};

class State {
public:
  static State &get();

  void restart(uint64_t seed);

  std::recursive_mutex mutex;
  int devices = 1, arch = 90, version = 13000;
  CUresult init = CUDA_SUCCESS; ///< what cuInit says
  uint64_t memoryBytes = 1ull << 30;
  uint64_t lockable = UINT64_MAX; ///< bytes of the host that may still be locked
  bool isInitialized = false;
  int64_t issues = 0; ///< calls that have put work, a mark or a wait into a stream; a graph is one
  bool saysIssues = false;
  int contextUsers = 0;           ///< who has not given back a context yet
  CUresult sticky = CUDA_SUCCESS; ///< after a fault nothing works any more
  std::string fault;
  std::vector<std::unique_ptr<Memory>> memories; ///< by device
  std::vector<CUctx_st> contexts;
  Planted planted;
  std::unique_ptr<Timeline> timeline;
  CUstream_st defaultStream{};
  int lastStream = 0; ///< its number
  std::set<CUstream> streams;
  std::set<CUevent> events;
  std::set<CUmodule> modules;
  std::set<CUgraph> graphs;
  std::set<CUgraphExec> executables;
  std::map<void *, size_t> hostMemory; ///< that was allocated here

  /// The context of this thread; throws where there is none.
  CUctx_st *context();
  Memory &memory() { return *memories[context()->device]; }
  /// The memory that an address is in, of any device; the current one's if it is in none.
  Memory &memoryOf(uint64_t address);
  CUstream stream(CUstream handle);
  /// Puts work into a stream, or into what it records.
  void submit(CUstream stream, const std::string &what, Work work, Ready isReady = {});
  /// The same, of what a fault may be planted in.
  void submitWork(CUstream stream, const std::string &what, Work work, Ready isReady = {});
  /// Ends the process where something is open.
  void checkHandles();
  /// Takes of what may be locked; nothing is given back.
  void lock(uint64_t bytes);
  /// Before a call that waits: throws where this thread records something; with `byOthers` where any does.
  void refuseCapture(bool byOthers = false);

private:
  State();
  void configure();
};

/// Every call: under the lock, with what goes wrong as its status.
CUresult call(const std::function<void(State &)> &work, bool needsContext = true);
inline void require(bool holds, CUresult status, const std::string &text) {
  if (!holds)
    throw CallError{status, text};
}
/// The thread's current context.
CUctx_st *&currentContext();

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_DRIVER_STATE_H
