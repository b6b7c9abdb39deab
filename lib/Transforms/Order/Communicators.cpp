//===- Communicators.cpp - who talks to whom on a grid of ranks -----------===//

#include "dsopt/Transforms/Order/Communicators.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"

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

/// Declares `name` where the module has none of its kind: what else is called so makes way.
template <typename OpTy, typename Value>
static void declare(SymbolTable &symbols, StringRef name, Value value) {
  if (symbols.lookup<OpTy>(name))
    return;
  graph::makeWay(symbols, name);
  auto module = cast<ModuleOp>(symbols.getOp());
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  OpTy::create(builder, module.getLoc(), name, value);
}

void dsopt::declareCommunicators(ModuleOp module, int64_t ranks, int64_t positions) {
  SymbolTable symbols(module);
  Builder builder(module.getContext());
  declare<CommunicatorOp>(symbols, kDataParallel, groupsOf(builder, positions, ranks, ranks, 1));
  declare<CommunicatorOp>(symbols, kPipeline, groupsOf(builder, ranks, 1, positions, ranks));
  declare<CommunicatorOp>(symbols, kWorld, groupsOf(builder, 1, 0, ranks * positions, 1));
}

void dsopt::declareNodes(ModuleOp module, int64_t nodeSize) {
  SymbolTable symbols(module);
  Builder builder(module.getContext());
  int64_t ranks = options::dp(module).value_or(1), positions = 0;
  for (auto program : module.getOps<ProgramOp>())
    positions = std::max<int64_t>(positions, program.getPosition() + 1);
  declare<CommunicatorOp>(symbols, kNode,
                          groupsOf(builder, ranks * positions / nodeSize, nodeSize, nodeSize, 1));
  SmallVector<Attribute> across;
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t place = 0; place < nodeSize; ++place) {
      auto members = llvm::map_to_vector(llvm::seq<int64_t>(0, ranks / nodeSize), [&](int64_t node) {
        return position * ranks + node * nodeSize + place;
      });
      across.push_back(builder.getI64ArrayAttr(members));
    }
  declare<CommunicatorOp>(symbols, kAcross, builder.getArrayAttr(across));
}

void dsopt::declareStreams(ModuleOp module, int64_t positions) {
  SymbolTable symbols(module);
  declare<StreamOp>(symbols, kComputeStream, StreamKind::Compute);
  declare<StreamOp>(symbols, kCommStream, StreamKind::Communication);
  if (positions == 1)
    return;
  declare<StreamOp>(symbols, kSendStream, StreamKind::Communication);
  declare<StreamOp>(symbols, kRecvStream, StreamKind::Communication);
}

void dsopt::declareHostStreams(ModuleOp module) {
  SymbolTable symbols(module);
  declare<StreamOp>(symbols, kHostStream, StreamKind::Host);
  declare<StreamOp>(symbols, kDownloadStream, StreamKind::Copy);
  declare<StreamOp>(symbols, kUploadStream, StreamKind::Copy);
}

void dsopt::declareDiskStream(ModuleOp module) {
  SymbolTable symbols(module);
  declare<StreamOp>(symbols, kDiskStream, StreamKind::Disk);
}
