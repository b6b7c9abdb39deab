//===- Accesses.h - what a program says that its actions touch --*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_ACCESSES_H
#define DSOPT_LIB_RUNTIME_CORE_ACCESSES_H

#include "dsopt/Runtime/Session.h"

#include <string>
#include <vector>

namespace dsopt::runtime {

/// Bytes [begin, end) of a memory that an action touches on this rank.
struct Touch {
  size_t address = 0; ///< which of the action's: of `refs`, then `temp`, then `others`
  size_t memory = 0;
  int64_t begin = 0, end = 0;
  bool reads = false, writes = false;
  bool isWhole = false;   ///< it writes each of them, whatever was there
  bool isScratch = false; ///< nobody else ever reads them
};

/// What each action of a position touches. An Error names an action of which the table does not say it, or
/// says what does not lie in its buffer, or leaves a buffer that outlives the step out of its changes.
std::vector<std::vector<Touch>> touchesOf(const Program &program, const Position &position,
                                          const RankInfo &info);

/// The first two actions that touch the same bytes, one of them writing, of which the second may start before
/// the first is over, by queues and waits alone; with what is wrong. None: an empty text.
std::string findRace(const Position &position, const std::vector<std::vector<Touch>> &touches);

/// "byte 4 of slot 1 of 'y'": of a buffer of `touches` if there is one that has the byte.
std::string describePlace(const Position &position, size_t memory, int64_t at,
                          const std::vector<Touch> &touches);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_ACCESSES_H
