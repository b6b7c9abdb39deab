//===- Together.h - what all ranks do, or none ------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_TOGETHER_H
#define DSOPT_LIB_RUNTIME_CORE_TOGETHER_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"

#include <functional>
#include <optional>

namespace dsopt::runtime {

/// Collective: runs `body` on every rank. An Error of one is an Error of all: what is wrong with a file is
/// often wrong for many ranks, so the first one says it. Where nothing is wrong but Unreadable checkpoints,
/// returns the first rank's on all of them.
std::optional<Error> together(Engine &engine, const std::function<void()> &body);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_TOGETHER_H
