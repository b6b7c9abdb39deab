//===- Rendezvous.h - processes become ranks of one run ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H
#define DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H

#include "Comm/Sockets.h"
#include "dsopt/Runtime/World.h"

#include <optional>

namespace dsopt::runtime {

/// All ranks of a run, connected.
struct Met {
  std::vector<Socket> links;      ///< by rank; none to itself and to ranks that this one does not talk to
  std::vector<std::string> hosts; ///< by rank: equal for ranks that can share memory
  std::vector<std::string> names; ///< by rank: "node7", for messages
  std::string key;                ///< known to these ranks only
  Socket listener;                ///< rank 0's, where the others met it
  std::optional<Error> failure;   ///< what the connected ranks have to end with
};

/// Throws LaunchError.
Met meet(const Meeting &meeting);

/// The key of what two ranks send each other, the same on both.
std::string linkKey(const std::string &runKey, int rank, int peer);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H
