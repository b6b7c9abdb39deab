//===- AsyncSave.h - a checkpoint while steps go on -------------*- C++ -*-===//
//
// A thread of its own writes a rank's state; actions that would change what it has not
// taken wait. What ranks do together stays with the thread that runs steps, between
// two of them: the step's agreement says when all have written, then they exchange
// hashes, and rank 0's thread gives the checkpoint its name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_ASYNCSAVE_H
#define DSOPT_LIB_RUNTIME_CORE_ASYNCSAVE_H

#include "Core/Saver.h"
#include "Core/StateStream.h"

#include <exception>
#include <functional>
#include <thread>

namespace dsopt::runtime {

class AsyncSave {
public:
  /// `cpus`: where its thread runs, any if empty. `remote` has what the host has to bring, if anything. The
  /// references outlive it.
  AsyncSave(const SavePlan &plan, Engine &engine, int64_t stagingBytes, std::vector<int> cpus,
            RemoteState *remote = nullptr);
  ~AsyncSave();
  AsyncSave(const AsyncSave &) = delete;

  /// Collective, while there is none: begins a save. `named` runs on rank 0 in another thread, when the
  /// checkpoint has its name.
  void begin(std::unique_ptr<Saver> saver, std::function<void()> named);
  /// Collective, when all ranks have written: goes on to the checkpoint's name.
  void agree();
  /// Collective: waits until it has its name. Without a save, nothing.
  void finish();

  /// Whether this rank's part is not on disk yet.
  bool isWriting() const { return stage == Stage::Writing && !(done && !failure); }
  /// Whether ranks have yet to agree on what they wrote.
  bool awaitsAgreement() const { return stage == Stage::Writing; }
  /// Throws what the thread met.
  void check();

  /// The regions of state that bytes [begin, end) of memory are part of.
  std::vector<size_t> regionsIn(const char *begin, const char *end) const;
  /// Whether something of them is still to be taken.
  bool holds(const std::vector<size_t> &which) const {
    if (stage != Stage::Writing)
      return false;
    for (size_t region : which)
      if (stream->holds(region))
        return true;
    return false;
  }
  /// Where the thread may still read.
  template <typename F> void eachHeld(F body) const {
    for (size_t i = 0; i < regions.size(); ++i)
      if (holds({i}))
        body(regions[i].begin, regions[i].end);
  }
  /// Takes a piece of what is held, so that actions wait no longer than they have to; false: nothing but to
  /// wait.
  bool take(const std::vector<size_t> &which);

private:
  enum class Stage { None, Writing, Naming };
  struct Region {
    const char *begin, *end;
  };
  /// Brings what this rank has of what ranks save together.
  void fetchShared() const;
  void start(std::function<void()> body);
  void join();

  const SavePlan &plan;
  Engine &engine;
  std::vector<int> cpus;
  RemoteState *remote;
  std::vector<Region> regions;
  std::vector<size_t> order; ///< of the plan's pieces
  char *staging;
  int64_t stagingBytes;
  std::unique_ptr<StateStream> stream;

  Stage stage = Stage::None;
  std::unique_ptr<Saver> saver;
  std::function<void()> named;
  std::thread thread;
  std::atomic<bool> done{true}; ///< the thread has nothing more to do; `failure` may be read
  std::exception_ptr failure;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_ASYNCSAVE_H
