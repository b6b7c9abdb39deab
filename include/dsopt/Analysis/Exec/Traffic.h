//===- Traffic.h - what each action sends -----------------------*- C++ -*-===//
//
// The one count that the plan's sums and its list of collectives are of.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_TRAFFIC_H
#define DSOPT_ANALYSIS_EXEC_TRAFFIC_H

#include "dsopt/Dialect/Exec/Exec.h"

#include <optional>
#include <vector>

namespace dsopt {
class AccessAnalysis;

/// What one rank sends by one action, in bytes.
struct SentBytes {
  mlir::Operation *action;
  exec::Traffic kind;
  mlir::FlatSymbolRefAttr buffer; ///< what arrives there; of a message what is sent
  mlir::FlatSymbolRefAttr over;   ///< the communicator
  int64_t bytes = 0;              ///< but for `padding`, what the ends of buckets add
  int64_t padding = 0;
  std::optional<int64_t> logical;      ///< what `bytes` stand for, of what is compressed
  std::optional<int64_t> betweenNodes; ///< what has to leave a node for them; none without nodes
};

/// Bytes of a buffer's slot that are no padding.
int64_t payloadOf(exec::BufferOp buffer);

/// Of a program's actions, in their order. `nodeSize`: ranks of a node, 0: there are none.
std::vector<SentBytes> collectTraffic(exec::ProgramOp program, AccessAnalysis &analysis, int64_t nodeSize);
/// The same of each of a module's programs, under the module's options.
std::vector<std::vector<SentBytes>> collectTraffic(mlir::ModuleOp module,
                                                   llvm::ArrayRef<exec::ProgramOp> programs);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_TRAFFIC_H
