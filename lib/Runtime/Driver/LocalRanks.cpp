//===- LocalRanks.cpp - forks ranks, watches them, reports one failure ----===//
//
// The launcher has no threads. It keeps the shared mapping, so that it can tell
// the others when a rank dies and sees when nobody gets on. Ranks hand their error
// messages over through a pipe; the first one is printed, the others follow from it.
// The launcher alone counts signals: ranks hear of the first one, a second one ends
// them.
//
//===----------------------------------------------------------------------===//

#include "LocalRanks.h"
#include "MetricsLog.h"
#include "RankPlaces.h"
#include "Signals.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;

namespace {
using Clock = std::chrono::steady_clock;
/// After the first failure the others have this long before they are ended, and so long to be gone then.
constexpr std::chrono::seconds kGrace{5}, kGone{3};
/// How a message in the pipe begins, before the rank's number and a colon: from a rank that prints (and what
/// happens again however often it is tried), or one that leaves it to others.
constexpr char kLoud = 's', kRecurs = 'r', kQuiet = 'q';

/// Signals that stop a run, and those of ranks that ended.
sigset_t watchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : stopSignals())
    sigaddset(&signals, signal);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

/// What became of a world.
struct Outcome {
  int status = StatusOk;
  std::string failure; ///< what is printed
  int rank = -1;       ///< whose it is, -1: nobody's in particular
  bool recurs = false; ///< starting again does not help
};

class LocalLauncher {
public:
  /// `usual` is the signal mask of the ranks, `requests` counts signals over all worlds.
  LocalLauncher(Run &run, const sigset_t &usual, int &requests)
      : run(run), clock(run.settings.stallTimeout), usual(usual), requests(requests) {}
  ~LocalLauncher() {
    for (int end : messages)
      if (end >= 0)
        sys::close(end);
  }

  Outcome start() {
    const Program &program = run.program();
    int world = static_cast<int>(program.ranks());
    group = SharedGroup::create(arenasOf(program));
    if (sys::pipe2(messages, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error(StatusFailure, std::string("pipe failed: ") + std::strerror(errno));
    std::fflush(nullptr);
    pid_t launcher = getpid();
    for (int rank = 0; rank < world; ++rank) {
      pid_t pid = sys::fork();
      if (pid == 0)
        beRank(rank, launcher);
      if (pid < 0) {
        int error = errno;
        fail(rank, "rank " + std::to_string(rank) + " cannot be started: " + std::strerror(error) +
                       " (limits of processes or memory: ulimit -u, ulimit -v)");
        endAll(SIGKILL);
        break;
      }
      pids.push_back(pid);
      ++alive;
    }
    spoke.resize(pids.size());
    watch();
    return outcome;
  }

private:
  [[noreturn]] void beRank(int rank, pid_t launcher) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fault::setRank(rank);
    if (getppid() != launcher)
      _exit(StatusFailure);
    int result = StatusOk;
    std::string message;
    bool quiet = false, recurs = false;
    std::unique_ptr<Engine> engine;
    std::string from = std::to_string(rank) + ":";
    reportLostMappings(messages[1], kLoud + from, '\0');
    try {
      installSignals(OnSignal::Stop);
      sigprocmask(SIG_SETMASK, &usual, nullptr);
      engine = group->join(rank);
      result = runRank(run, *engine, group->arena(rank));
      engine->finish();
    } catch (const Error &error) {
      result = error.status;
      message = error.what();
      quiet = error.quiet;
      recurs = error.recurs;
    } catch (const std::exception &error) {
      result = StatusFailure;
      message = describeRank(run.program(), rank) + ": " + messageOf(error);
    }
    if (!message.empty())
      handOver((quiet ? kQuiet : recurs ? kRecurs : kLoud) + from + message.substr(0, 4000) + '\0');
    if (result != StatusOk && result != StatusInterrupted && engine)
      engine->fail(result, quiet);
    std::fflush(nullptr);
    _exit(result);
  }

  /// One write of at most PIPE_BUF bytes is not mixed with others'.
  void handOver(const std::string &record) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (sys::write(messages[1], record.data(), record.size()) >= 0 || (errno != EAGAIN && errno != EINTR))
        return;
      usleep(1000);
    }
  }

  void endAll(int signal) {
    for (pid_t pid : pids)
      if (pid > 0)
        kill(pid, signal);
  }

  void fail(int rank, const std::string &why) {
    outcome.status = StatusFailure;
    if (outcome.failure.empty()) {
      outcome.failure = why;
      outcome.rank = rank;
    }
  }

  void watch() {
    Clock::time_point failedAt = Clock::time_point::max(), killedAt = failedAt;
    sigset_t watched = watchedSignals();
    while (alive > 0) {
      timespec wait{0, 200 * 1000 * 1000};
      int signal = sigtimedwait(&watched, nullptr, &wait);
      if (signal > 0 && signal != SIGCHLD)
        interrupt();
      reap();
      Clock::time_point now = Clock::now();
      if (!ending() && standsStill(now)) {
        std::vector<int> stuck = stuckRanks(*group, pids);
        fail(stuck.empty() ? -1 : stuck.front(),
             "nothing has moved for " + std::to_string(run.settings.stallTimeout.count() / 1000) +
                 " s (-stall-timeout): " + describeStall(run.program(), *group, pids));
        endAll(SIGKILL);
      }
      if (ending() && failedAt == Clock::time_point::max())
        failedAt = now;
      if (failedAt != Clock::time_point::max() && killedAt == Clock::time_point::max() &&
          now - failedAt > kGrace) {
        killedAt = now;
        endAll(SIGKILL);
      }
      if (killedAt != Clock::time_point::max() && now - killedAt > kGone)
        return abandon();
    }
    takeMessages();
    if (outcome.failure.empty())
      outcome.failure = hearsay;
    if (group->failedRank() >= 0 && outcome.failure.empty())
      fail(group->failedRank(), "rank " + std::to_string(group->failedRank()) + " failed");
  }

  /// Whether all are to end now.
  bool ending() const {
    return group->failedRank() >= 0 || leaving ||
           (outcome.status != StatusOk && outcome.status != StatusInterrupted);
  }

  /// The first signal finishes the step, a second one ends at once; what comes when the ranks are done
  /// changes nothing.
  void interrupt() {
    for (size_t rank = 0; rank < pids.size(); ++rank)
      if (static_cast<Place>(group->pulseOf(static_cast<int>(rank)).place.load()) == Place::Done)
        return;
    if (++requests == 1)
      return endAll(SIGTERM);
    leaving = true;
    endAll(SIGKILL);
  }

  bool standsStill(Clock::time_point now) {
    bool awaitsData = false;
    bool still = clock.isOver(now, [&] {
      uint64_t beats = 0;
      for (int rank = 0; rank < static_cast<int>(pids.size()); ++rank) {
        const Pulse &pulse = group->pulseOf(rank);
        beats += pulse.beats.load(std::memory_order_relaxed);
        awaitsData |= static_cast<Place>(pulse.place.load()) == Place::AwaitingData;
      }
      return beats;
    });
    if (awaitsData)
      clock.restart(); // another program's time is not the ranks'
    return still && !awaitsData;
  }

  void reap() {
    int waitStatus = 0;
    for (pid_t pid; (pid = waitpid(-1, &waitStatus, WNOHANG)) > 0;) {
      auto found = std::find(pids.begin(), pids.end(), pid);
      if (found == pids.end())
        continue;
      int rank = static_cast<int>(found - pids.begin());
      *found = -1;
      --alive;
      takeMessages();
      if (leaving) {
        if (outcome.status == StatusOk)
          outcome.status = StatusInterrupted;
        continue;
      }
      bool earlier = group->failedRank() >= 0 && group->failedRank() != rank;
      int code = WIFEXITED(waitStatus) ? WEXITSTATUS(waitStatus) : -1;
      if (group->markEnded(rank, waitStatus) && (code == StatusOk || code == StatusInterrupted)) {
        if (outcome.status == StatusOk)
          outcome.status = code;
        continue;
      }
      if (!earlier && !spoke[rank])
        fail(rank, describeDeath(run.program(), *group, rank, waitStatus));
      if (outcome.status == StatusOk || outcome.status == StatusInterrupted)
        outcome.status = group->failureStatus() == StatusInput ? StatusInput : StatusFailure;
    }
  }

  /// Ranks that not even SIGKILL ends: a device holds them.
  void abandon() {
    for (size_t rank = 0; rank < pids.size(); ++rank)
      if (pids[rank] > 0)
        fail(static_cast<int>(rank), describeRank(run.program(), static_cast<int>(rank)) + " (process " +
                                         std::to_string(pids[rank]) + ") does not end: the system holds it " +
                                         describeWhere(run.program(), *group, static_cast<int>(rank)));
  }

  /// The first message wins.
  void takeMessages() {
    char buffer[4096];
    for (ssize_t bytes; (bytes = sys::read(messages[0], buffer, sizeof buffer)) > 0;)
      received.append(buffer, bytes);
    for (size_t end; (end = received.find('\0')) != std::string::npos; received.erase(0, end + 1)) {
      size_t colon = received.find(':');
      size_t rank = std::strtoul(received.c_str() + 1, nullptr, 10);
      std::string text = received.substr(colon + 1, end - colon - 1);
      if (rank < spoke.size())
        spoke[rank] = 1;
      if (received[0] != kQuiet && outcome.failure.empty()) {
        outcome.failure = text;
        outcome.rank = static_cast<int>(rank);
        outcome.recurs = received[0] == kRecurs;
      } else if (received[0] == kQuiet && hearsay.empty()) {
        hearsay = text;
      }
    }
  }

  Run &run;
  std::unique_ptr<SharedGroup> group;
  std::vector<pid_t> pids; ///< by rank, -1: ended
  std::vector<char> spoke; ///< ranks that said themselves what is wrong
  int alive = 0, messages[2] = {-1, -1};
  bool leaving = false;
  StallClock clock;
  Outcome outcome;
  std::string received; ///< of the pipe, not yet taken apart
  std::string hearsay;  ///< the first quiet message: what ranks agreed on, printed if no rank speaks up
  sigset_t usual;
  int &requests;
};

/// Memory that the ranks share with the launcher beside the group's.
Board *makeBoard() {
  void *memory = sys::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(StatusFailure, std::string("cannot map a page that ranks share: ") + std::strerror(errno));
  return new (memory) Board();
}

/// The end of the log that rank 0 did not come to write.
void endLog(const Run &run, const Outcome &outcome) {
  if (!run.board->logOpen.exchange(0))
    return;
  bool interrupted = outcome.status == StatusInterrupted;
  appendEnd(run.settings.log, failureRecord(run.board->steps, interrupted ? "interrupted" : "failed",
                                            outcome.rank, interrupted ? "a second signal" : outcome.failure));
}

/// Lets the next world begin with what this one saved last, or where this run began.
void beginAgain(Run &run, const Outcome &outcome, int64_t restart) {
  run.notes.clear();
  std::string from = goBack(run.settings, run.saveFolder.get(), run.notes);
  run.settings.appendsLog = true;
  std::fflush(stdout);
  std::fprintf(stderr, "dsopt: warning: %s; restart %lld of %lld begins %s\n", outcome.failure.c_str(),
               (long long)restart, (long long)run.settings.restarts,
               from.empty() ? "where the run began, since nothing is saved yet" : ("with " + from).c_str());
}
} // namespace

int dsopt::runtime::runLocalRanks(Run &run) {
  const Program &program = run.program();
  if (program.ranks() == 1 && run.settings.restarts == 0) {
    installSignals(OnSignal::StopThenLeave);
    fault::setRank(0);
    std::unique_ptr<Engine> engine = makeSingleEngine();
    int status = runRank(run, *engine, allocateArena(arenaOf(program.positions[0])));
    engine->finish();
    return status;
  }
  // From here on signals wait until they are asked for; those that come after the ranks change nothing.
  sigset_t watched = watchedSignals(), usual;
  sigprocmask(SIG_BLOCK, &watched, &usual);
  run.board = makeBoard();
  int requests = 0;
  for (int64_t restart = 1;; ++restart) {
    Outcome outcome = LocalLauncher(run, usual, requests).start();
    endLog(run, outcome);
    if (outcome.status != StatusFailure || outcome.recurs || requests > 0 ||
        restart > run.settings.restarts) {
      if (!outcome.failure.empty())
        printError(outcome.failure);
      return outcome.status;
    }
    beginAgain(run, outcome, restart);
  }
}
