//===- Signals.cpp - what signals that stop a run do -----------------------===//

#include "Signals.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

using namespace dsopt::runtime;

static std::atomic<Session *> activeSession{nullptr};
static std::atomic<Engine *> activeEngine{nullptr};
static volatile std::sig_atomic_t stopRequests = 0;
static volatile std::sig_atomic_t onSignal = static_cast<int>(OnSignal::Leave);

[[noreturn]] static void leave() {
  if (Engine *engine = activeEngine.load())
    engine->leave(StatusInterrupted);
  _exit(StatusInterrupted);
}

static void handleSignal(int) {
  bool done = pulse().place.load() == static_cast<int>(Place::Done);
  auto what = static_cast<OnSignal>(onSignal);
  if (what == OnSignal::Leave || (what == OnSignal::StopThenLeave && stopRequests && !done))
    leave();
  requestStop();
}

const std::vector<int> &dsopt::runtime::stopSignals() {
  static const std::vector<int> signals = [] {
    std::vector<int> found{SIGTERM, SIGINT, SIGUSR1};
    struct sigaction before{};
    if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      found.push_back(SIGHUP);
    return found;
  }();
  return signals;
}

void dsopt::runtime::installSignals(OnSignal what) {
  onSignal = static_cast<int>(what);
  // oneDNN's products point the stack register into their workspace on the heap: a handler's frame must
  // never be written below it.
  alignas(64) static char handlerStack[64 << 10];
  stack_t stack{};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof handlerStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = handleSignal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : stopSignals())
    sigaction(signal, &action, nullptr);
}

void dsopt::runtime::requestStop() {
  stopRequests = 1;
  if (Session *session = activeSession.load())
    session->requestStop();
}

bool dsopt::runtime::stopRequested() { return stopRequests != 0; }

ActiveRun::ActiveRun(Session &session, Engine &engine) {
  activeEngine = &engine;
  activeSession = &session;
  if (stopRequests)
    session.requestStop();
}
ActiveRun::~ActiveRun() {
  activeSession = nullptr;
  activeEngine = nullptr;
}
