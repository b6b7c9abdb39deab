//===- Targets.h - one command line for several targets ---------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_TARGETS_H
#define DSOPT_TOOLS_DSOPT_TARGETS_H

#include "dsopt/Runtime/Options.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace dsopt {

/// The targets of a command line, which are compiled one after the other, and what is made of them together.
class Targets {
public:
  /// An Error of status 1 where something is asked for that only one target has.
  explicit Targets(const runtime::ParsedOptions &options);

  /// What was asked for, for each target alone; the device's comes first.
  std::vector<runtime::ParsedOptions> each;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> programs; ///< of those that are compiled
  std::string plans;

  bool areSeveral() const { return each.size() > 1; }
};

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_TARGETS_H
