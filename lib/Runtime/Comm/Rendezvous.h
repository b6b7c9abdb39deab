//===- Rendezvous.h - processes become ranks of one run ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H
#define DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H

#include "Comm/Sockets.h"
#include "dsopt/Runtime/World.h"

namespace dsopt::runtime {

/// All ranks of a run, connected.
struct Met {
  std::vector<Socket> links;      ///< by rank; none to itself
  std::vector<std::string> hosts; ///< by rank: equal for ranks that can share memory
  std::vector<std::string> names; ///< by rank: "node7", for messages
  std::string secret;             ///< known to these ranks only
};

/// Throws LaunchError.
Met meet(const Meeting &meeting);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_RENDEZVOUS_H
