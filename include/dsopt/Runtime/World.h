//===- World.h - ranks that a foreign launcher started ----------*- C++ -*-===//
//
// Processes that know only their rank, how many they are and where rank 0 is
// become an engine: they meet at rank 0, prove to each other that they know one
// secret, agree that they are one run, share memory where they share a host, and
// talk over TCP where they do not.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_WORLD_H
#define DSOPT_RUNTIME_WORLD_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Record.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What keeps ranks from becoming one run: said by every rank, since each may have a place of its own for
/// what it prints.
class LaunchError : public Error {
public:
  using Error::Error;
};

/// How this process meets the others.
struct Meeting {
  /// Ports from `port` on that rank 0 may listen at: the first may be taken.
  static constexpr int kPorts = 16;

  int rank = 0, size = 1;
  std::string address; ///< of rank 0
  int port = 0;
  bool portTaken = false; ///< the launcher itself listens at `port`
  std::string job;        ///< tells runs with neighbouring ports apart
  std::string host;       ///< ranks with one name share memory; empty: told by the machine
  /// What all ranks know and nobody else; empty: anybody who reaches the port may take part.
  std::string secret;
  bool insecure = false; ///< no secret is needed even where others can reach the port
  Record record;         ///< equal on all ranks
  EarlyTrouble trouble;  ///< why this rank cannot take part: the others are told
  /// Ranks that this one talks to, rank 0 among them; each of them names this one as well. Empty: all.
  std::vector<int> peers;
  /// Prints at once what rank 0 refuses the meeting for (it stays to tell who comes late), and the trouble of
  /// a rank that does not find rank 0 soon.
  std::function<void(const std::string &)> say;
  std::chrono::seconds limit{60};
  std::function<bool()> interrupted; ///< asked while waiting
};

/// A rank among the others.
struct Joined {
  std::shared_ptr<SharedGroup> memory; ///< of this host, null if the rank is alone there
  char *arena = nullptr;
  std::unique_ptr<Engine> engine;
};

/// Meets the other ranks; `arenaBytes` of each rank. Throws LaunchError, a quiet one if rank 0 says it.
Joined joinWorld(const Meeting &meeting, const std::vector<int64_t> &arenaBytes);

/// Tells the others of `meeting.trouble`, so that none waits for this rank. False if it did not reach them.
bool tellTrouble(const Meeting &meeting);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_WORLD_H
