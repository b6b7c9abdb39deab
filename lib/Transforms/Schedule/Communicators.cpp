//===- Communicators.cpp - who talks to whom on a grid of ranks -----------===//

#include "Communicators.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Symbols.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// `count` groups of `members` ranks: the first ones are `between` apart, those of a group `stride`.
static ArrayAttr groupsOf(Builder &builder, int64_t count, int64_t between, int64_t members, int64_t stride) {
  SmallVector<Attribute> groups;
  for (int64_t group = 0; group < count; ++group) {
    SmallVector<int64_t> ranks;
    for (int64_t member = 0; member < members; ++member)
      ranks.push_back(group * between + member * stride);
    groups.push_back(builder.getI64ArrayAttr(ranks));
  }
  return builder.getArrayAttr(groups);
}

void dsopt::declareCommunicators(ModuleOp module, int64_t ranks, int64_t positions) {
  SymbolTable symbols(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto declare = [&](StringRef name, ArrayAttr groups) {
    if (symbols.lookup<CommunicatorOp>(name))
      return;
    graph::makeWay(symbols, name);
    CommunicatorOp::create(builder, module.getLoc(), name, groups);
  };
  declare(kDataParallel, groupsOf(builder, positions, ranks, ranks, 1));
  declare(kPipeline, groupsOf(builder, ranks, 1, positions, ranks));
  declare(kWorld, groupsOf(builder, 1, 0, ranks * positions, 1));
}

void dsopt::declareStreams(ModuleOp module, int64_t positions) {
  SymbolTable symbols(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto declare = [&](StringRef name, StreamKind kind) {
    if (symbols.lookup<StreamOp>(name))
      return;
    graph::makeWay(symbols, name);
    StreamOp::create(builder, module.getLoc(), name, kind);
  };
  declare(kComputeStream, StreamKind::Compute);
  declare(kCommStream, StreamKind::Communication);
  if (positions == 1)
    return;
  declare(kSendStream, StreamKind::Communication);
  declare(kRecvStream, StreamKind::Communication);
}
