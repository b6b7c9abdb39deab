//===- GatherByNode.cpp - gathers within a node, from slices kept there ---===//
//
// ZeRO++'s secondary partition (Wang et al., 2023): the ranks of a node keep among them what
// a step has gathered from other nodes, one slice each, and later gathers of the step stay in
// the node. A rank keeps the slices of those that have its place in their nodes: they come by one
// gather among these, and lie in the order of the nodes. Values are the same.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"
#include "dsopt/Transforms/Overlap/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace dsopt {
#define GEN_PASS_DEF_GATHERBYNODE
#include "dsopt/Transforms/Overlap/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Splits the gathers of one program.
class Splitter {
public:
  Splitter(ProgramOp program, int64_t nodeSize, AccessAnalysis &analysis)
      : nodeSize(nodeSize), nodes(analysis.members.grid().size(Axis::edp) / nodeSize), analysis(analysis),
        out(program) {}
  LogicalResult split();

private:
  /// Whether it makes parameters whole over all data-parallel ranks.
  bool isOfParameters(GatherOp gather);
  void split(GatherOp gather);
  FlatSymbolRefAttr secondary(GatherOp gather);

  int64_t nodeSize, nodes;
  AccessAnalysis &analysis;
  ProgramBuilder out;
  llvm::DenseSet<Attribute> kept; ///< buffers of slices whose node has them as they are
};
} // namespace

bool Splitter::isOfParameters(GatherOp gather) {
  if (!gather || gather.getCommunicator() != kDataParallel)
    return false;
  BufferOp target = analysis.buffer(out.program, gather.getTarget().getBuffer().getAttr());
  return target && target.getRole() == BufferRole::Gathered;
}

FlatSymbolRefAttr Splitter::secondary(GatherOp gather) {
  BufferOp whole = analysis.buffer(out.program, gather.getTarget().getBuffer().getAttr());
  auto type = cast<MemRefType>(whole.getType());
  ProgramBuilder::BufferTraits traits;
  if (auto payload = whole.getPayload())
    traits.payload = llvm::divideCeil(*payload, nodeSize);
  return out.buffer(*whole.getOf() + ".secondary",
                    MemRefType::get({type.getNumElements() / nodeSize}, type.getElementType()),
                    BufferKind::Secondary, traits);
}

void Splitter::split(GatherOp gather) {
  FlatSymbolRefAttr own = secondary(gather);
  RefAttr target = gather.getTarget();
  int64_t bytes = gather.getBytes();
  auto emit = [&](RefAttr slice, RefAttr target, StringRef communicator) {
    return out.emit<GatherOp>(slice, target, bytes, gather.getWireAttr(), gather.getTraffic(), 0,
                              communicator, gather.getStream());
  };
  out.insertBefore(gather);
  if (kept.insert(gather.getSlice().getBuffer()).second)
    emit(gather.getSlice(), out.ref(own), kAcross);
  GatherOp last;
  for (int64_t node = 0; node < nodes; ++node)
    last = emit(out.ref(own, 0, node * bytes),
                out.ref(target.getBuffer(), target.getSlot(), target.getOffset() + node * nodeSize * bytes),
                kNode);
  gather.getEvent().replaceAllUsesWith(last.getEvent());
  gather.erase();
}

LogicalResult Splitter::split() {
  ScheduleOp schedule = getSchedule(out.program);
  for (Operation &op : llvm::make_early_inc_range(schedule.getBody().front())) {
    if (!isAction(&op))
      continue;
    if (auto gather = dyn_cast<GatherOp>(op); isOfParameters(gather)) {
      split(gather);
      continue;
    }
    FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
    if (failed(accesses))
      return failure();
    for (const Access &access : *accesses)
      if (access.writes)
        kept.erase(FlatSymbolRefAttr::get(access.buffer));
  }
  renumberCollectives(schedule);
  return success();
}

LogicalResult dsopt::gatherByNode(ModuleOp module) {
  int64_t ranks = dist::getGrid(module).dataParallel(), nodeSize = options::node_size(module).value_or(ranks);
  if (options::secondary_params(module) == "none")
    return success();
  if (nodeSize < 1 || ranks % nodeSize)
    return module.emitError("node_size is ")
           << nodeSize << ", expected a divisor of the " << ranks << " data-parallel ranks";
  if (nodeSize == 1 || nodeSize == ranks)
    return success();
  if (int64_t sp = dist::getGrid(module).size(Axis::sp); sp > 1)
    return module.emitError(
               "secondary_params keeps what nodes of data-parallel ranks have, but slices lie on ")
           << sp << " ranks along sp, too: expected none";
  declareNodes(module, nodeSize);
  AccessAnalysis analysis(module);
  for (auto program : module.getOps<ProgramOp>())
    if (getSchedule(program) && failed(Splitter(program, nodeSize, analysis).split()))
      return failure();
  return success();
}

namespace {
struct GatherByNode : dsopt::impl::GatherByNodeBase<GatherByNode> {
  void runOnOperation() override {
    if (failed(gatherByNode(getOperation())))
      signalPassFailure();
  }
};
} // namespace
