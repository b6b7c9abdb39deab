//===- LocalRanks.cpp - forks ranks, watches them, reports one failure ----===//
//
// The launcher has no threads. It keeps the shared mapping, so that it can tell
// the others when a rank dies. Ranks hand their error messages over through a
// pipe; the first one is printed, the others follow from it.
//
//===----------------------------------------------------------------------===//

#include "LocalRanks.h"
#include "dsopt/Runtime/Fault.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;

namespace {
using Clock = std::chrono::steady_clock;
/// After the first failure the others have this long before they are ended.
constexpr std::chrono::seconds kGrace{7};
/// How a message in the pipe begins: from a rank that prints, or one that leaves it to others.
constexpr char kLoud = 's', kQuiet = 'q';

std::string describeDeath(const Program &program, const SharedGroup &group, int rank, int waitStatus) {
  std::string text = describeRank(program, rank);
  if (WIFSIGNALED(waitStatus)) {
    int signal = WTERMSIG(waitStatus);
    text += " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  } else {
    text += " ended with status " + std::to_string(WEXITSTATUS(waitStatus));
  }
  int64_t step = group.stepOf(rank);
  if (step < 0)
    return text + " before its first step or after its last";
  std::string action = describeAction(program, rank, group.actionOf(rank));
  return text + " in step " + std::to_string(step) +
         (action.empty() ? ", between actions" : ", in '" + action + "'");
}

class LocalLauncher {
public:
  explicit LocalLauncher(Run &run) : run(run) {}

  int start() {
    const Program &program = run.program();
    int world = static_cast<int>(program.dp * program.pp);
    group = SharedGroup::create(arenasOf(program));
    if (pipe2(messages, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error(StatusFailure, std::string("pipe failed: ") + std::strerror(errno));
    sigemptyset(&watched);
    for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD})
      sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, &usual);
    std::fflush(nullptr);
    pid_t launcher = getpid();
    for (int rank = 0; rank < world; ++rank) {
      pid_t pid = fork();
      if (pid == 0)
        beRank(rank, launcher);
      if (pid < 0) {
        int error = errno;
        failure = "rank " + std::to_string(rank) + " cannot be started: " + std::strerror(error);
        status = StatusFailure;
        endAll(SIGKILL);
        break;
      }
      ranks.push_back(pid);
      ++alive;
    }
    watch();
    sigprocmask(SIG_SETMASK, &usual, nullptr);
    if (!failure.empty())
      printError(failure);
    return status;
  }

private:
  [[noreturn]] void beRank(int rank, pid_t launcher) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fault::setRank(rank);
    if (getppid() != launcher)
      _exit(StatusFailure);
    int result = StatusOk;
    std::string message;
    bool quiet = false;
    std::unique_ptr<Engine> engine;
    try {
      installSignals(launcher);
      sigprocmask(SIG_SETMASK, &usual, nullptr);
      engine = group->join(rank);
      result = runRank(run, *engine, group->arena(rank));
      engine->finish();
    } catch (const Error &error) {
      result = error.status;
      message = error.what();
      quiet = error.quiet;
    } catch (const std::exception &error) {
      result = StatusFailure;
      message = describeRank(run.program(), rank) + ": " + error.what();
    }
    if (!message.empty()) {
      // One write of at most PIPE_BUF bytes is not mixed with others'.
      std::string record = (quiet ? kQuiet : kLoud) + message.substr(0, 4000) + '\0';
      [[maybe_unused]] ssize_t written = write(messages[1], record.data(), record.size());
    }
    if (result != StatusOk && result != StatusInterrupted && engine)
      engine->fail(result, quiet);
    std::fflush(nullptr);
    _exit(result);
  }

  void endAll(int signal) {
    for (pid_t pid : ranks)
      if (pid > 0)
        kill(pid, signal);
  }

  void watch() {
    Clock::time_point failedAt = Clock::time_point::max();
    if (!failure.empty())
      failedAt = Clock::now();
    bool killed = false;
    while (alive > 0) {
      timespec wait{0, 200 * 1000 * 1000};
      siginfo_t info;
      int signal = sigtimedwait(&watched, &info, &wait);
      if (signal == SIGTERM || signal == SIGINT || signal == SIGUSR1)
        endAll(signal); // ranks count: the first finishes the step, the second ends
      reap();
      bool failing = group->failedRank() >= 0 || (status != StatusOk && status != StatusInterrupted);
      if (failing && failedAt == Clock::time_point::max())
        failedAt = Clock::now();
      if (failing && !killed && Clock::now() - failedAt > kGrace) {
        killed = true;
        endAll(SIGKILL);
      }
    }
    takeMessage();
    if (failure.empty())
      failure = hearsay;
    if (group->failedRank() >= 0 && failure.empty())
      failure = "rank " + std::to_string(group->failedRank()) + " failed";
  }

  void reap() {
    int waitStatus = 0;
    for (pid_t pid; (pid = waitpid(-1, &waitStatus, WNOHANG)) > 0;) {
      auto found = std::find(ranks.begin(), ranks.end(), pid);
      if (found == ranks.end())
        continue;
      int rank = static_cast<int>(found - ranks.begin());
      *found = -1;
      --alive;
      takeMessage();
      int code = WIFEXITED(waitStatus) ? WEXITSTATUS(waitStatus) : -1;
      if (code == StatusOk)
        continue;
      bool earlier = group->failedRank() >= 0 && group->failedRank() != rank;
      if (code == StatusInterrupted) {
        if (status == StatusOk)
          status = StatusInterrupted;
        // Ended at once by a second signal: nobody else finishes either.
        continue;
      }
      bool own = code == StatusInput || code == StatusFailure;
      if (failure.empty() && !earlier && !own)
        failure = describeDeath(run.program(), *group, rank, waitStatus);
      group->markEnded(rank, waitStatus);
      if (status == StatusOk || status == StatusInterrupted)
        status = group->failureStatus() == StatusInput ? StatusInput : StatusFailure;
    }
  }

  /// The first message wins.
  void takeMessage() {
    char buffer[4096];
    for (ssize_t bytes; (bytes = read(messages[0], buffer, sizeof buffer)) > 0;)
      received.append(buffer, bytes);
    for (size_t end; (end = received.find('\0')) != std::string::npos; received.erase(0, end + 1))
      if (std::string &text = received[0] == kQuiet ? hearsay : failure; text.empty())
        text = received.substr(1, end - 1);
  }

  Run &run;
  std::unique_ptr<SharedGroup> group;
  std::vector<pid_t> ranks;
  int alive = 0, status = StatusOk, messages[2] = {-1, -1};
  std::string received; ///< of the pipe, not yet taken apart
  std::string failure;  ///< what is printed
  std::string hearsay;  ///< the first quiet message: what ranks agreed on, printed if no rank speaks up
  sigset_t watched, usual;
};
} // namespace

int dsopt::runtime::runLocalRanks(Run &run) {
  const Program &program = run.program();
  if (program.dp * program.pp > 1)
    return LocalLauncher(run).start();
  installSignals(0);
  fault::setRank(0);
  std::unique_ptr<Engine> engine = makeSingleEngine();
  int status = runRank(run, *engine, allocateArena(arenaOf(program.positions[0])));
  engine->finish();
  return status;
}
