//===- Hosts.cpp - the members of a communicator by host -------------------===//

#include "Comm/Hosts.h"

#include <map>

namespace dsopt::runtime {

Hosts::Hosts(const Communicator &group, const std::vector<std::string> &hosts) {
  std::map<std::string, int> known;
  for (int member = 0; member < group.size(); ++member) {
    auto [host, isNew] = known.emplace(hosts[group.ranks[member]], static_cast<int>(members.size()));
    if (isNew)
      members.emplace_back();
    hostOf.push_back(host->second);
    placeOf.push_back(static_cast<int>(members[host->second].size()));
    members[host->second].push_back(member);
    gathers |= placeOf.back() > 0;
  }
  own = hostOf[group.self];
  std::vector<int> ranks;
  for (int member : members[own])
    ranks.push_back(group.ranks[member]);
  neighbours = Communicator(group.number, ranks, group.ranks[group.self]);
  local = count() == 1;
  // Blocks of one power of two side by side: the tree above them is that of the blocks.
  int width = static_cast<int>(members[0].size());
  subtrees = !local && width > 1 && (width & (width - 1)) == 0;
  for (int member = 0; member < group.size(); ++member)
    subtrees &= hostOf[member] == member / width && placeOf[member] == member % width;
  subtrees &= group.size() % width == 0;
}

} // namespace dsopt::runtime
