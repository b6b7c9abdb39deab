//===- World.h - ranks that a foreign launcher started ----------*- C++ -*-===//
//
// Processes that know only their rank, how many they are and where rank 0 is
// become an engine: they meet at rank 0, agree that they are one run, share memory
// where they share a host, and talk over TCP where they do not.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_WORLD_H
#define DSOPT_RUNTIME_WORLD_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"

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
  uint64_t program = 0;   ///< of what is to be trained; these three are equal on all ranks
  uint64_t build = 0;     ///< of the code
  uint64_t options = 0;   ///< of what the command line changes in the result
  std::string what;       ///< the program, for messages
  std::chrono::seconds limit{60};
  std::function<bool()> interrupted; ///< asked while waiting
};

/// A rank among the others.
struct Joined {
  std::shared_ptr<SharedGroup> memory; ///< of this host, null if the rank is alone there
  char *arena = nullptr;
  std::unique_ptr<Engine> engine;
};

/// Meets the other ranks; `arenaBytes` of each rank. Throws LaunchError.
Joined joinWorld(const Meeting &meeting, const std::vector<int64_t> &arenaBytes);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_WORLD_H
