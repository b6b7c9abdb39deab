//===- ChooseTarget.cpp - which of an executable's programs runs ----------===//
//
// A driver that was started does not survive a fork, and ranks are forked: whether there is a device that can
// be used is found out by a process of its own.
//
//===----------------------------------------------------------------------===//

#include "ChooseTarget.h"
#include "Descriptor.h"
#include "dsopt/Runtime/System.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;

/// A driver that does not answer for so long is as good as none.
static constexpr unsigned kPatience = 60;

/// What another process says of the devices that the ranks of this machine would take; empty: they are fine.
static std::string askForObstacle(const Program &program, int ranks) {
  int ends[2];
  if (sys::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(StatusFailure, std::string("pipe failed: ") + std::strerror(errno));
  Descriptor from(ends[0]), to(ends[1]);
  pid_t asked = sys::fork();
  if (asked < 0)
    throw Error(StatusFailure, std::string("fork failed: ") + std::strerror(errno));
  if (asked == 0) {
    alarm(kPatience);
    std::string obstacle = deviceObstacle(program, ranks);
    bool isSaid =
        sys::write(to.fd, obstacle.data(), obstacle.size()) == static_cast<ssize_t>(obstacle.size());
    _exit(isSaid ? StatusOk : StatusFailure);
  }
  sys::close(to.release());
  std::string said;
  char buffer[1024];
  for (ssize_t bytes; (bytes = sys::read(from.fd, buffer, sizeof buffer)) != 0;) {
    if (bytes > 0)
      said.append(buffer, bytes);
    else if (errno != EINTR)
      break;
  }
  int status = 0;
  while (waitpid(asked, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM
               ? "the CUDA driver did not answer for " + std::to_string(kPatience) + " s"
               : "the process that asked the CUDA driver ended by signal " + std::to_string(WTERMSIG(status));
  if (status != 0 && said.empty())
    return "the process that asked the CUDA driver ended with status " + std::to_string(WEXITSTATUS(status));
  return said;
}

std::unique_ptr<ProgramObject>
dsopt::runtime::chooseTarget(std::vector<std::unique_ptr<ProgramObject>> objects, const std::string &runOn,
                             const Launch &launch, std::vector<Note> &notes) {
  if (!runOn.empty()) {
    for (std::unique_ptr<ProgramObject> &object : objects)
      if (object->program.target == runOn)
        return std::move(object);
    throw Error(StatusInput, "option -run-on=" + runOn + ": the program is for " +
                                 objects.front()->program.target +
                                 " alone; compile it with -target=cpu,cuda");
  }
  if (objects.size() == 1)
    return std::move(objects.front());
  const Program &program = objects.front()->program;
  int64_t ranks = launch.localSize > 0 ? launch.localSize : program.ranks();
  std::string obstacle = askForObstacle(program, static_cast<int>(ranks));
  notes.push_back({obstacle.empty() ? "runs on the GPU (-run-on=cpu runs it on the CPU)"
                                    : "runs on the CPU, not on a GPU: " + obstacle,
                   false});
  return std::move(objects[obstacle.empty() ? 0 : 1]);
}
