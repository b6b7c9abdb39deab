//===- WorldEngine.h - the engine of ranks on several hosts -----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_WORLDENGINE_H
#define DSOPT_LIB_RUNTIME_COMM_WORLDENGINE_H

#include "Comm/Rendezvous.h"
#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

/// Of rank `rank` among those it met; `memory` is shared by this host's ranks, null if it is alone here.
std::unique_ptr<Engine> makeWorldEngine(int rank, Met met, std::shared_ptr<SharedGroup> memory);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_WORLDENGINE_H
