//===- Process.cpp - what a process sets up before all else ----------------===//

#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace dsopt::runtime {

void prepareProcess() {
  // A new descriptor takes the lowest number that is free.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      sys::open("/dev/null", O_RDWR);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int64_t raiseDescriptorLimit(int64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return wanted;
  auto soft = static_cast<rlim_t>(wanted);
  if (limit.rlim_cur < soft) {
    limit.rlim_cur = std::min(limit.rlim_max, soft);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur > static_cast<rlim_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(limit.rlim_cur);
}

} // namespace dsopt::runtime
