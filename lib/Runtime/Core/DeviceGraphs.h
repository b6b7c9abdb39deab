//===- DeviceGraphs.h - which actions a CUDA graph replays ------*- C++ -*-===//
//
// A run of actions of one queue of a device, with nothing between them that the host does
// or that another queue has to be waited for, is recorded once as a CUDA graph and from
// then on put on its stream by one call. What such a run waits for its first action waits
// for, and who waits for it waits for its last one, so that nothing starts later than it
// would without graphs. The host's part stays between the graphs: inputs, agreements,
// communication, and what is not the same in every step.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICEGRAPHS_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICEGRAPHS_H

#include "dsopt/Runtime/Program.h"

namespace dsopt::runtime {

/// What matters of an action.
struct GraphPart {
  bool isRecordable = false; ///< puts the same work on its stream in every step
  bool isMuch = false;       ///< so much that a graph pays for it alone
  int phase = 0;             ///< those of different ones do not come together
};

struct GraphPlan {
  /// By action: how many of its queue, from it on, one graph replays; 0 where none begins.
  std::vector<int64_t> lengths;
  int64_t graphs = 0, actions = 0; ///< of a step
};

/// `parts` are by action.
GraphPlan planGraphs(const std::vector<Action> &actions, const std::vector<GraphPart> &parts);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICEGRAPHS_H
