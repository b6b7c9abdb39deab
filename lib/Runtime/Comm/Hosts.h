//===- Hosts.h - the members of a communicator by host ----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_HOSTS_H
#define DSOPT_LIB_RUNTIME_COMM_HOSTS_H

#include "dsopt/Runtime/Engine.h"

#include <string>
#include <vector>

namespace dsopt::runtime {

/// How operations of a communicator that spans hosts use what its members share. The same on all members.
struct Hosts {
  /// `hosts` by rank.
  Hosts(const Communicator &group, const std::vector<std::string> &hosts);

  int count() const { return static_cast<int>(members.size()); }
  /// Who brings what of another host's member over the wire to host `to`: a place in the communicator.
  int fetcher(int member, int to) const {
    return members[to][placeOf[member] % static_cast<int>(members[to].size())];
  }

  std::vector<std::vector<int>> members; ///< places in the communicator, by host
  std::vector<int> hostOf, placeOf;      ///< of each member: its host, its place there
  int own = 0;                           ///< this rank's host
  Communicator neighbours;               ///< this host's members
  bool local = false;                    ///< all are on this host
  bool gathers = false;                  ///< some host has more than one: it fetches once
  /// Each host's members are a whole subtree of the canonical tree: they are added there first.
  bool subtrees = false;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_HOSTS_H
