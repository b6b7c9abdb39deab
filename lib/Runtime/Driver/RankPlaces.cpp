//===- RankPlaces.cpp - where the ranks of this machine are ----------------===//

#include "RankPlaces.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include <sys/wait.h>

using namespace dsopt::runtime;

static Place placeOf(const SharedGroup &group, int rank) {
  return static_cast<Place>(group.pulseOf(rank).place.load());
}

std::string dsopt::runtime::describeWhere(const Program &program, const SharedGroup &group, int rank) {
  Place place = placeOf(group, rank);
  int64_t step = group.stepOf(rank);
  bool acts = place == Place::Training || place == Place::Evaluating;
  std::string action = acts && step >= 0 ? describeAction(program, rank, group.actionOf(rank)) : "";
  if (!action.empty())
    action = ", in '" + action + "'";
  if (place != Place::Training)
    return describePlace(place) + action;
  if (step < 0)
    return describePlace(Place::Starting);
  return "in step " + std::to_string(step) + (action.empty() ? ", between actions" : action);
}

std::string dsopt::runtime::describeDeath(const Program &program, const SharedGroup &group, int rank,
                                          int waitStatus) {
  std::string text = describeRank(program, rank);
  if (WIFSIGNALED(waitStatus)) {
    int signal = WTERMSIG(waitStatus);
    text += " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ") ";
  } else {
    text += " ended with status " + std::to_string(WEXITSTATUS(waitStatus)) + " without being done, ";
  }
  return text + describeWhere(program, group, rank);
}

/// The letter that the system has for a process: T where it is stopped, D where a device holds it.
static char stateOf(pid_t pid) {
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
  size_t name = line.rfind(')');
  return name == std::string::npos || name + 2 >= line.size() ? '?' : line[name + 2];
}

std::vector<int> dsopt::runtime::stuckRanks(const SharedGroup &group, const std::vector<pid_t> &pids) {
  std::vector<int> stuck;
  for (int rank = 0; rank < static_cast<int>(pids.size()); ++rank)
    if (pids[rank] > 0 && (!group.pulseOf(rank).waits.load() || std::strchr("TtD", stateOf(pids[rank]))))
      stuck.push_back(rank);
  return stuck;
}

std::string dsopt::runtime::describeStall(const Program &program, const SharedGroup &group,
                                          const std::vector<pid_t> &pids) {
  std::vector<int> stuck = stuckRanks(group, pids), waiting;
  for (int rank = 0; rank < static_cast<int>(pids.size()); ++rank)
    if (pids[rank] > 0 && !std::count(stuck.begin(), stuck.end(), rank))
      waiting.push_back(rank);
  std::string text;
  if (!waiting.empty()) {
    text = describeRanks(waiting) + (waiting.size() > 1 ? " wait for " : " waits for ") +
           (stuck.empty() ? "each other" : describeRanks(stuck)) + " (" +
           describeWhere(program, group, waiting.front()) + ")";
  }
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(stuck.size(), kShown); ++i) {
    char state = stateOf(pids[stuck[i]]);
    text += (text.empty() ? "" : "; ") + describeRank(program, stuck[i]) + " is " +
            (state == 'T' || state == 't' ? "stopped "
             : state == 'D'               ? "held by the system "
                                          : "") +
            describeWhere(program, group, stuck[i]);
  }
  return text;
}
