//===- Process.cpp - what a process sets up before all else ----------------===//

#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace dsopt::runtime {

/// What kernels, products and passes were seen to need, twice over; and what systems give.
static constexpr rlim_t kLeastStack = 256 << 10, kUsualStack = 8 << 20;

/// The first thread's stack grows up to the limit that is set then; others have that of their making.
static void raiseStackLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kUsualStack)
    return;
  limit.rlim_cur = std::min(limit.rlim_max, kUsualStack);
  if (limit.rlim_cur < kLeastStack) {
    std::fprintf(
        stderr, "dsopt: error: the limit of the stack (ulimit -Hs) is %llu bytes, expected %llu or more\n",
        static_cast<unsigned long long>(limit.rlim_cur), static_cast<unsigned long long>(kLeastStack));
    _exit(StatusInput);
  }
  setrlimit(RLIMIT_STACK, &limit);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return;
  if (pthread_attr_setstacksize(&attributes, limit.rlim_cur) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

void prepareProcess() {
  raiseStackLimit();
  // A new descriptor takes the lowest number that is free.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      sys::open("/dev/null", O_RDWR);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

SignalsHeld::SignalsHeld() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
}

SignalsHeld::~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

std::thread startThread(std::function<void()> body) {
  SignalsHeld held;
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw Error(StatusFailure, std::string("a thread cannot be started: ") +
                                   std::strerror(error.code().value()) +
                                   " (limits of processes or memory: ulimit -u, ulimit -v)");
  }
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
