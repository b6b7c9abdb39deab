//===- ShardingPlan.h - what shards cut, and what they send -----*- C++ -*-===//
//
// Both forms of the plan print this; smaller sizes of a dimension follow its cuts. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_PIPELINE_SHARDINGPLAN_H
#define DSOPT_LIB_PIPELINE_SHARDINGPLAN_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace dsopt {

struct ShardingPlan {
  /// A parameter that is no other's part. Its name, shape and dimensions are those that a user sees:
  /// PyTorch's, where the model says that a matrix lies the other way round.
  struct Parameter {
    mutable graph::ParameterOp whole;
    llvm::SmallVector<int64_t> shape;
    std::optional<int64_t> dim;     ///< of the stored value
    std::optional<int64_t> seenDim; ///< of `shape`
    std::string why;                ///< it is whole, where that was tried
  };
  enum class Kind { AllGather, AllReduce, ReduceScatter, AllToAll, Shift };
  /// The collectives on values of one kind, over the same axes, in one phase of a block: of a rank in a step.
  struct Collectives {
    int64_t block = 0, calls = 0, bytes = 0; ///< that it sends
    Phase phase = Phase::F;
    Kind kind = Kind::AllReduce;
    std::string axes; ///< "tp"
    llvm::StringRef reason;
  };

  /// How attention that is alike sees all positions: `group` ranks of a sequence exchange heads.
  struct Attention {
    int64_t attentions = 0, group = 1;
    llvm::SmallVector<int64_t> groups, elements, picoseconds; ///< what could be, sent by a rank and taken
  };

  int64_t shards = 1, ranks = 1;                 ///< over tp
  int64_t sequenceShards = 1, sequenceRanks = 1; ///< over sp
  std::vector<Parameter> parameters;
  std::vector<Collectives> collectives; ///< in order of blocks
  std::vector<Attention> attention;
  /// What a step is taken for by the choice of cuts, in milliseconds, and what no choice is below; none where
  /// nobody chose.
  std::optional<double> cost, bound;
};

/// None where there are no tensor or sequence shards.
std::optional<ShardingPlan> collectSharding(mlir::ModuleOp module);
/// The value of "sharding" in -plan=json.
void writeSharding(const ShardingPlan &plan, llvm::json::OStream &json);

} // namespace dsopt

#endif // DSOPT_LIB_PIPELINE_SHARDINGPLAN_H
