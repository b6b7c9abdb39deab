//===- InspectExample.h - lines that would work with a model ----*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_INSPECTEXAMPLE_H
#define DSOPT_TOOLS_DSOPT_INSPECTEXAMPLE_H

#include "dsopt/Import/InspectONNX.h"
#include "dsopt/Runtime/Options.h"

namespace dsopt {

/// A line of Python that writes data of random numbers, and what takes them; empty where it is not known.
struct InspectExample {
  std::string python, train, predict;
};

/// The example of a model that was looked into with these options, which its lines repeat.
InspectExample makeExample(const Inspection &found, const runtime::ParsedOptions &options);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_INSPECTEXAMPLE_H
