//===- StateMessages.h - state that ranks hand to each other ----*- C++ -*-===//
//
// Between steps, outside of any program: saves and outputs bring together what several
// ranks have. Ranks that share memory read each other's arenas, but not what lies on
// disk: that goes by way of an arena's bytes which are free between steps.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_STATEMESSAGES_H
#define DSOPT_LIB_RUNTIME_CORE_STATEMESSAGES_H

#include "Core/Addresses.h"

namespace dsopt::runtime {

/// Sends `bytes` at `source`, in this rank's buffer of state `held`.
void sendState(Engine &engine, const Program &program, const Addresses &addresses, const Ref &held, int to,
               const char *source, int64_t bytes, uint64_t tag);
/// Receives what rank `from` sends of its buffer `held`.
void receiveState(Engine &engine, const Program &program, const Ref &held, int from, char *target,
                  int64_t bytes, uint64_t tag);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_STATEMESSAGES_H
