//===- Ranks.h - forks ranks in a test --------------------------*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_RANKS_H
#define DSOPT_TEST_RUNTIME_RANKS_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"

#include <cstdio>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dsopt::runtime::test {

/// Memory that forked ranks write and the test reads.
template <typename T> T *sharedMemory(int64_t count) {
  return static_cast<T *>(
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

/// Runs `body(engine, arena)` in `ranks` forked processes; its result, or an Error's status, is the
/// rank's exit status. Errors that are not quiet are printed. Returns the wait statuses by rank.
inline std::vector<int> runRanks(SharedGroup &group, const std::function<int(Engine &, char *)> &body) {
  std::vector<pid_t> pids;
  fflush(nullptr);
  for (int rank = 0; rank < group.size(); ++rank) {
    pid_t pid = fork();
    if (pid == 0) {
      int status = 99;
      std::unique_ptr<Engine> engine = group.join(rank);
      try {
        status = body(*engine, group.arena(rank));
        engine->finish();
      } catch (const Error &error) {
        engine->fail(error.status, error.quiet);
        if (!error.quiet)
          fprintf(stderr, "rank %d: %s\n", rank, error.what());
        status = error.status;
      }
      fflush(nullptr);
      _exit(status);
    }
    pids.push_back(pid);
  }
  std::vector<int> statuses(pids.size());
  for (size_t left = pids.size(); left > 0; --left) {
    int status;
    pid_t pid = wait(&status);
    for (size_t rank = 0; rank < pids.size(); ++rank)
      if (pids[rank] == pid) {
        statuses[rank] = status;
        group.markEnded(static_cast<int>(rank), status);
      }
  }
  return statuses;
}

} // namespace dsopt::runtime::test

#endif // DSOPT_TEST_RUNTIME_RANKS_H
