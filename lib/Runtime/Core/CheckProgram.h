//===- CheckProgram.h - what the runtime relies on --------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_CHECKPROGRAM_H
#define DSOPT_LIB_RUNTIME_CORE_CHECKPROGRAM_H

#include "dsopt/Runtime/Program.h"

namespace dsopt::runtime {

/// An Error of status 1 about the program table.
[[noreturn]] void badProgram(const std::string &what);

/// Checks the sizes of a program's axes.
void checkGrid(const std::array<int64_t, kAxes> &axes);

/// Checks all of a program but its actions: what the rest of the runtime relies on without looking.
void checkProgram(const Program &program);

/// Likewise the actions of a position, number `place`. Of the program they need the layout, the communicators
/// and the numbers of inputs and buckets.
void checkActions(const Program &program, int64_t place, const Position &position,
                  const std::vector<Action> &actions);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_CHECKPROGRAM_H
