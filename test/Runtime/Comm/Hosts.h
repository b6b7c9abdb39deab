//===- Hosts.h - ranks that meet through sockets -----------------*- C++ -*-===//
//
// Launched ranks as processes of one machine, which believe themselves on hosts that have different names
// only.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_RUNTIME_COMM_HOSTS_H
#define DSOPT_TEST_RUNTIME_COMM_HOSTS_H

#include "dsopt/Runtime/World.h"

#include <functional>
#include <string>
#include <vector>

namespace dsopt::runtime::test {

/// Bytes of each rank's arena.
constexpr int64_t kArena = 48 << 20;

/// Runs ranks that know only their number and a port, and returns how each ended: what `body` gave, an
/// error's status and 10, or the status alone where the error is not to be said; -1 where a signal ended it.
/// `host` names the host of each.
std::vector<int> runWorld(int ranks, const std::function<std::string(int)> &host,
                          const std::function<int(Engine &, char *)> &body);

inline std::string alone(int rank) { return "host" + std::to_string(rank); }
inline std::string everyoneHere(int) { return "here"; }
inline std::string pairs(int rank) { return "host" + std::to_string(rank / 2); }
inline std::string inTurn(int rank) { return "host" + std::to_string(rank % 2); }

} // namespace dsopt::runtime::test

#endif // DSOPT_TEST_RUNTIME_COMM_HOSTS_H
