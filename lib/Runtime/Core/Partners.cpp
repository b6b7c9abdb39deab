//===- Partners.cpp - which ranks talk to which ---------------------------===//

#include "dsopt/Runtime/Partners.h"
#include "Comm/Rounds.h"
#include "Core/SavedState.h"
#include "dsopt/Runtime/Session.h"

#include <map>
#include <numeric>
#include <set>

namespace dsopt::runtime {

std::vector<int> peersOf(const Program &program, int rank) {
  std::set<int> peers{0};
  auto add = [&](const std::vector<int> &some) { peers.insert(some.begin(), some.end()); };
  auto agrees = [&](const std::vector<int> &ranks) { add(Rounds::peersOf(Communicator(0, ranks, rank))); };
  std::vector<int> world(program.ranks());
  std::iota(world.begin(), world.end(), 0);
  agrees(world);
  int64_t position = rankInfo(program, rank).position;
  // Many actions, few communicators.
  std::map<int64_t, std::vector<int>> groups;
  std::set<std::pair<int64_t, bool>> known; ///< communicators whose collectives, or agreements, were met
  for (size_t list = 0; list < countLists(program); ++list) {
    if (positionsOf(program, list).empty())
      continue;
    for (const Action &action : positionsOf(program, list)[position].actions) {
      if (!communicates(action.kind))
        continue;
      std::vector<int> &group = groups[action.communicator];
      if (group.empty())
        group = program.grid.group(rank, program.communicators[action.communicator].axes);
      bool isAgreement = action.kind == ActionKind::Agree;
      if (action.kind == ActionKind::Send || action.kind == ActionKind::Recv)
        peers.insert(group[action.peer]);
      else if (!known.insert({action.communicator, isAgreement}).second)
        continue;
      else if (isAgreement)
        agrees(group);
      else
        add(group);
    }
  }
  add(savePeers(program, rank));
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

} // namespace dsopt::runtime
