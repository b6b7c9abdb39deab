//===- ProgramBuilder.cpp - writes one position's program -----------------===//

#include "ProgramBuilder.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

ProgramBuilder::ProgramBuilder(ModuleOp module, AccessAnalysis &analysis, int64_t position,
                               std::pair<int64_t, int64_t> blocks, bool evaluates, IntegerAttr variant)
    : context(module.getContext()), location(module.getLoc()), buffers(context), actions(context),
      analysis(analysis) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::string name = ((evaluates ? "evaluate" : "position") + Twine(position)).str();
  if (variant)
    name += "." + std::to_string(variant.getInt());
  program = ProgramOp::create(builder, location, name, position,
                              ArrayRef<int64_t>{blocks.first, blocks.second}, IntegerAttr(), IntegerAttr());
  if (evaluates)
    program->setAttr(kEvaluatesAttr, builder.getUnitAttr());
  if (variant)
    program->setAttr(kVariantAttr, variant);
  Block *body = &program.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(body);
  auto schedule = ScheduleOp::create(builder, location);
  actions.setInsertionPointToEnd(&schedule.getBody().emplaceBlock());
  buffers.setInsertionPoint(schedule);
}

FlatSymbolRefAttr ProgramBuilder::buffer(const Twine &name, Type type, StringRef kind, BufferTraits traits) {
  auto symbol = StringAttr::get(context, name);
  BufferOp &op = declared[symbol];
  if (!op) {
    op = BufferOp::create(buffers, location, symbol.getValue(), type, kind, traits.slots,
                          aligned(bytesOf(type)), IntegerAttr(), traits.persistent,
                          traits.symbol.empty() ? StringAttr() : StringAttr::get(context, traits.symbol));
    if (traits.payload >= 0 && traits.payload != bytesOf(type))
      op->setAttr(kPayloadAttr, buffers.getI64IntegerAttr(traits.payload));
  }
  return FlatSymbolRefAttr::get(symbol);
}

void ProgramBuilder::insertWait(Operation *action, Stream stream, OpBuilder &builder) {
  timeline.append(WaitOp::create(builder, location, action->getResult(0), stream));
}

void ProgramBuilder::wait(Operation *action, Stream stream) {
  if (!action)
    return;
  const Timeline::Entry &entry = timeline.entries()[timeline.indexOf(action)];
  if (timeline.now((int)stream)[entry.stream] < entry.sequence)
    insertWait(action, stream, actions);
}

void ProgramBuilder::order(Operation *action) {
  SmallVector<Access> accesses;
  if (mlir::failed(analysis.collect(action, accesses))) {
    broken = true;
    return;
  }
  Stream stream = getStream(action);
  // The last conflicting action of each stream; what its completion implies
  // needs no wait of its own.
  std::array<int64_t, kStreams> needed;
  needed.fill(-1);
  for (const Access &access : accesses)
    hazards.conflicts(access, [&](int64_t entry, bool) {
      int64_t &last = needed[timeline.entries()[entry].stream];
      last = std::max(last, entry);
    });
  OpBuilder before(action);
  for (int s = 0; s < kStreams; ++s) {
    if (needed[s] < 0)
      continue;
    const Timeline::Entry &entry = timeline.entries()[needed[s]];
    bool implied = timeline.now((int)stream)[s] >= entry.sequence;
    for (int other = 0; other < kStreams && !implied; ++other)
      implied =
          other != s && needed[other] >= 0 && timeline.entries()[needed[other]].start[s] >= entry.sequence;
    if (!implied)
      insertWait(entry.op, stream, before);
  }
  int64_t index = timeline.entries().size();
  timeline.append(action);
  for (const Access &access : accesses)
    hazards.record(access, index, (int)stream);
}
