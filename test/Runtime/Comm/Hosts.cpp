//===- Hosts.cpp - ranks that meet through sockets -------------------------===//

#include "Hosts.h"

#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace dsopt::runtime::test {

std::vector<int> runWorld(int ranks, const std::function<std::string(int)> &host,
                          const std::function<int(Engine &, char *)> &body) {
  // Not a fixed port: several tests may run at the same time.
  int port = 20000 + getpid() % 12000;
  std::vector<pid_t> pids;
  fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t pid = fork();
    if (pid == 0) {
      Joined joined;
      int status = 99;
      try {
        Meeting meeting;
        meeting.rank = rank;
        meeting.size = ranks;
        meeting.address = "127.0.0.1";
        meeting.port = port;
        meeting.host = host(rank);
        joined = joinWorld(meeting, std::vector<int64_t>(ranks, kArena));
        status = body(*joined.engine, joined.arena);
        joined.engine->finish();
      } catch (const Error &error) {
        if (joined.engine)
          joined.engine->fail(error.status, error.quiet);
        if (!error.quiet)
          fprintf(stderr, "rank %d: %s\n", rank, error.what());
        status = error.quiet ? error.status : 10 + error.status;
      }
      fflush(nullptr);
      _exit(status);
    }
    pids.push_back(pid);
  }
  std::vector<int> statuses;
  for (pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return statuses;
}

} // namespace dsopt::runtime::test
