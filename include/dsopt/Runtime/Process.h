//===- Process.h - what a process sets up before all else -------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_PROCESS_H
#define DSOPT_RUNTIME_PROCESS_H

#include <csignal>
#include <cstdint>
#include <functional>
#include <thread>

namespace dsopt::runtime {

/// Standard streams that are closed become /dev/null, so that no file takes their numbers; a reader that is
/// gone and a limit on file sizes are errors of the calls that meet them, not signals; stacks are as large as
/// they usually are, or as is allowed: below the least that programs need the process ends with an error.
void prepareProcess();

/// While it lives this thread gets no signals, nor do threads for ever that start in the meantime: those of
/// libraries, too, leave them to the main thread.
class SignalsHeld {
public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld &) = delete;
  SignalsHeld &operator=(const SignalsHeld &) = delete;

private:
  sigset_t before;
};

/// A thread that gets no signals, which are the main thread's; an Error says what keeps it from starting.
std::thread startThread(std::function<void()> body);

/// Raises the limit of open files to `wanted` where that is allowed; the limit then.
int64_t raiseDescriptorLimit(int64_t wanted);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_PROCESS_H
