//===- Communicators.cpp - who talks to whom on a grid of ranks -----------===//

#include "dsopt/Transforms/Order/Communicators.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Symbols.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Declares `name` where the module has none of its kind: what else is called so makes way.
template <typename OpTy, typename Value>
static void declare(SymbolTable &symbols, StringRef name, Value value) {
  if (symbols.lookup<OpTy>(name))
    return;
  graph::makeWay(symbols, name);
  auto module = cast<ModuleOp>(symbols.getOp());
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  symbols.insert(OpTy::create(builder, module.getLoc(), name, value));
}

static std::string declareOver(SymbolTable &symbols, dist::AxesAttr axes) {
  std::string name = communicatorName(axes);
  declare<CommunicatorOp>(symbols, name, axes);
  return name;
}

std::string dsopt::declareCommunicator(ModuleOp module, dist::AxesAttr axes) {
  SymbolTable symbols(module);
  return declareOver(symbols, axes);
}

void dsopt::declareCommunicators(ModuleOp module) {
  SymbolTable symbols(module);
  MLIRContext *context = module.getContext();
  auto over = [&](ArrayRef<AxisPart> parts) { declareOver(symbols, dist::AxesAttr::get(context, parts)); };
  over(dist::getDataAxes(context).getParts());
  over({AxisPart{Axis::pp}});
  over({AxisPart{Axis::pp}, AxisPart{Axis::edp}, AxisPart{Axis::ep}, AxisPart{Axis::sp}, AxisPart{Axis::tp}});
  for (auto bucket : llvm::to_vector(module.getOps<dist::BucketOp>()))
    over(bucket.getAxes().getParts());
  SmallVector<dist::AxesAttr> added;
  module.walk([&](dist::ValueCollectiveOpInterface op) { added.push_back(op.getAxes()); });
  for (dist::AxesAttr axes : added)
    over(axes.getParts());
}

void dsopt::declareNodes(ModuleOp module, int64_t nodeSize) {
  SymbolTable symbols(module);
  MLIRContext *context = module.getContext();
  for (auto [name, part] : {std::pair(kNode, AxisPart::Inner), std::pair(kAcross, AxisPart::Outer)})
    declare<CommunicatorOp>(symbols, name,
                            dist::AxesAttr::get(context, {AxisPart{Axis::edp, part, nodeSize}}));
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

void dsopt::declareTensorStream(ModuleOp module) {
  SymbolTable symbols(module);
  declare<StreamOp>(symbols, kTensorStream, StreamKind::Communication);
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
