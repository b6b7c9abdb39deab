//===- Traffic.cpp - what each action sends -------------------------------===//

#include "dsopt/Analysis/Exec/Traffic.h"

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

int64_t dsopt::payloadOf(BufferOp buffer) {
  auto payload = buffer->getAttrOfType<IntegerAttr>(kPayloadAttr);
  return payload ? payload.getInt() : bytesOf(buffer.getType());
}

/// Nodes of a collective's members but the first one's, and members that are in them.
static std::pair<int64_t, int64_t> elsewhere(ArrayRef<int64_t> members, int64_t nodeSize) {
  llvm::SmallDenseSet<int64_t> nodes;
  int64_t own = members.front() / nodeSize, others = 0;
  for (int64_t member : members)
    if (int64_t node = member / nodeSize; node != own) {
      nodes.insert(node);
      ++others;
    }
  return {nodes.size(), others};
}

std::vector<SentBytes> dsopt::collectTraffic(ProgramOp program, AccessAnalysis &analysis, int64_t nodeSize) {
  std::vector<SentBytes> all;
  llvm::DenseMap<StringAttr, BufferOp> buffers;
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    buffers[buffer.getSymNameAttr()] = buffer;
  // `part` is for each other member, the whole of what goes to it or this rank's own.
  auto collective = [&](auto op, Traffic kind, RefAttr whole, int64_t part, std::optional<int64_t> logical,
                        bool apart) {
    ArrayRef<int64_t> members = analysis.members.groups(op)->front();
    int64_t ranks = members.size(), sum = (ranks - 1) * part, useful = sum;
    BufferOp buffer = buffers.lookup(whole.getBuffer().getAttr());
    int64_t bytes = buffer && kind != Traffic::Tied && !apart ? bytesOf(buffer.getType()) : 0;
    if (bytes && bytes % (part * ranks) == 0)
      useful = payloadOf(buffer) / (bytes / (part * ranks)) * (ranks - 1) / ranks;
    SentBytes sent{op, kind, whole.getBuffer(), op.getCommunicatorAttr(), useful, sum - useful, {}, {}};
    if (logical)
      sent.logical = useful * *logical / part;
    if (nodeSize) {
      auto [nodes, others] = elsewhere(members, nodeSize);
      sent.betweenNodes = part * (apart ? others : nodes);
    }
    all.push_back(sent);
  };
  for (Operation &op : getSchedule(program).getBody().front()) {
    if (auto gather = dyn_cast<GatherOp>(op)) {
      collective(gather, gather.getTraffic(), gather.getTarget(), gather.getBytes(), gather.getLogical(),
                 /*apart=*/false);
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      collective(reduce, Traffic::ReduceScatter, reduce.getWhole(),
                 bytesOf(reduce.getElements(), reduce.getType()), std::nullopt, /*apart=*/false);
    } else if (auto exchange = dyn_cast<AllToAllOp>(op)) {
      collective(exchange, Traffic::AllToAll, exchange.getTarget(), exchange.getBytes(),
                 exchange.getLogical(), /*apart=*/true);
    } else if (auto send = dyn_cast<SendOp>(op)) {
      int64_t bytes = send.getBytes();
      // No node has ranks of two positions.
      all.push_back({send, send.getTraffic(), send.getSource().getBuffer(), send.getCommunicatorAttr(), bytes,
                     /*padding=*/0, std::nullopt, nodeSize ? std::optional(bytes) : std::nullopt});
    }
  }
  return all;
}

std::vector<std::vector<SentBytes>> dsopt::collectTraffic(ModuleOp module, ArrayRef<ProgramOp> programs) {
  AccessAnalysis analysis(module);
  std::vector<std::vector<SentBytes>> all;
  for (ProgramOp program : programs)
    all.push_back(collectTraffic(program, analysis, options::node_size(module).value_or(0)));
  return all;
}
