//===- Traffic.cpp - what each action sends -------------------------------===//

#include "dsopt/Analysis/Exec/Traffic.h"

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

int64_t dsopt::payloadOf(BufferOp buffer) { return buffer.getPayload().value_or(bytesOf(buffer.getType())); }

/// Nodes of a collective's members but the first one's, and members that are in them. Between two
/// data-parallel ranks of a node, `nodeSize` of which it has, lie those along faster axes.
static std::pair<int64_t, int64_t> elsewhere(const std::vector<int> &members, const Grid &grid,
                                             int64_t nodeSize) {
  llvm::SmallDenseSet<int64_t> nodes;
  int64_t ranks = nodeSize * grid.stride(Axis::edp), own = members.front() / ranks, others = 0;
  for (int64_t member : members)
    if (int64_t node = member / ranks; node != own) {
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
  for (auto op : getSchedule(program).getOps<CommunicationOpInterface>()) {
    std::optional<MovedBytes> moved = op.getMoved();
    if (!moved || !moved->traffic)
      continue;
    SentBytes sent{op,
                   *moved->traffic,
                   moved->value.getBuffer(),
                   op.getCommunicatorAttr(),
                   moved->bytes,
                   /*padding=*/0,
                   std::nullopt,
                   std::nullopt};
    if (!isa<CollectiveOpInterface>(*op)) {
      // No node has ranks of two positions.
      if (nodeSize)
        sent.betweenNodes = moved->bytes;
      all.push_back(sent);
      continue;
    }
    int64_t ranks = *analysis.members.count(op), part = moved->bytes;
    int64_t sum = moved->toNext ? part : (ranks - 1) * part;
    BufferOp buffer = buffers.lookup(moved->value.getBuffer().getAttr());
    // Padding is where the ends of buckets are, and of what tensor shards add.
    bool isPadded = isOfValues(sent.kind) || (sent.kind != Traffic::Tied && !moved->apart);
    int64_t bytes = buffer && isPadded ? bytesOf(buffer.getType()) : 0;
    bool isOfSlices = bytes && !moved->toNext && bytes % (part * ranks) == 0;
    sent.bytes = isOfSlices ? payloadOf(buffer) / (bytes / (part * ranks)) * (ranks - 1) / ranks : sum;
    sent.padding = sum - sent.bytes;
    // The product of two sizes may be more than 64 bits hold.
    if (moved->logical)
      sent.logical = int64_t(__int128(sent.bytes) * *moved->logical / part);
    if (nodeSize) {
      auto [nodes, others] = elsewhere(*analysis.members.group(op), analysis.members.grid(), nodeSize);
      sent.betweenNodes = part * (moved->toNext ? others > 0 : moved->apart ? others : nodes);
    }
    all.push_back(sent);
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
