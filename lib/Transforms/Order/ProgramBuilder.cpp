//===- ProgramBuilder.cpp - writes one position's program -----------------===//

#include "dsopt/Transforms/Order/ProgramBuilder.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

ProgramBuilder::ProgramBuilder(ProgramOp program)
    : program(program), context(program.getContext()), location(program.getLoc()), buffers(context),
      actions(context) {
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    keep(buffer);
  ScheduleOp schedule = getSchedule(program);
  actions.setInsertionPointToEnd(&schedule.getBody().front());
  buffers.setInsertionPoint(schedule);
}

ProgramBuilder::Role ProgramBuilder::roleOf(BufferOp buffer) {
  return {(int)*buffer.getRole(), buffer.getStateAttr(), buffer.getOfAttr(),
          (int64_t)buffer.getUse().value_or(-1)};
}

void ProgramBuilder::keep(BufferOp buffer) {
  declared[buffer.getSymNameAttr()] = buffer;
  if (buffer.getRole())
    roles[roleOf(buffer)] = buffer;
}

BufferOp ProgramBuilder::find(BufferRole role, StringRef of, int64_t use, StringRef state) {
  Attribute bucket = of.empty() ? Attribute() : FlatSymbolRefAttr::get(context, of),
            name = state.empty() ? Attribute() : StringAttr::get(context, state);
  return roles.lookup({(int)role, name, bucket, use});
}

ProgramBuilder::ProgramBuilder(ModuleOp module, int64_t position, ArrayRef<int64_t> blocks, bool evaluates,
                               IntegerAttr variant)
    : context(module.getContext()), location(module.getLoc()), buffers(context), actions(context) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::string name = ((evaluates ? "evaluate" : "position") + Twine(position)).str();
  if (variant)
    name += "." + std::to_string(variant.getInt());
  if (SymbolTable::lookupSymbolIn(module, name)) {
    SymbolTable symbols(module);
    graph::makeWay(symbols, name);
  }
  program =
      ProgramOp::create(builder, location, name, evaluates ? ProgramKind::Evaluation : ProgramKind::Step,
                        position, blocks, variant);
  Block *body = &program.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(body);
  MemoryOp::create(builder, location, kDeviceMemory, MemoryKind::Device,
                   isForDevice(module) ? kDeviceAlignment : kAlignment);
  auto schedule = ScheduleOp::create(builder, location);
  actions.setInsertionPointToEnd(&schedule.getBody().emplaceBlock());
  buffers.setInsertionPoint(schedule);
}

void ProgramBuilder::memory(StringRef name, MemoryKind kind, int64_t alignment) {
  SmallVector<MemoryOp> memories = getMemories(program);
  auto known = llvm::find_if(memories, [&](MemoryOp memory) { return memory.getSymName() == name; });
  if (known != memories.end()) {
    known->setAlignment(std::max<int64_t>(known->getAlignment(), alignment));
    return;
  }
  OpBuilder builder(context);
  builder.setInsertionPointAfter(memories.back());
  MemoryOp::create(builder, location, name, kind, alignment);
}

FlatSymbolRefAttr ProgramBuilder::buffer(const Twine &name, Type type, BufferKind kind, BufferTraits traits) {
  if (traits.role)
    if (BufferOp known = find(*traits.role, traits.of, traits.use, traits.state))
      return FlatSymbolRefAttr::get(known.getSymNameAttr());
  auto symbol = StringAttr::get(context, name);
  // What has a role is found by it alone; a rule may call its states as other buffers are called.
  auto isAnother = [&](BufferOp known) {
    return known && (traits.role || known.getRole() || known.getType() != type || known.getKind() != kind);
  };
  for (int64_t number = 1; isAnother(declared.lookup(symbol)); ++number)
    symbol = StringAttr::get(context, name + "." + Twine(number));
  if (!declared.contains(symbol)) {
    auto op = BufferOp::create(
        buffers, location, symbol.getValue(), type, kind, traits.slots, aligned(bytesOf(type)), IntegerAttr(),
        traits.persistent, traits.symbol.empty() ? StringAttr() : StringAttr::get(context, traits.symbol),
        traits.role ? BufferRoleAttr::get(context, *traits.role) : BufferRoleAttr(),
        traits.state.empty() ? StringAttr() : StringAttr::get(context, traits.state),
        traits.of.empty() ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(context, traits.of),
        traits.use < 0 ? IntegerAttr() : buffers.getI64IntegerAttr(traits.use),
        traits.memory.empty() ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(context, traits.memory),
        traits.payload >= 0 && traits.payload != bytesOf(type) ? buffers.getI64IntegerAttr(traits.payload)
                                                               : IntegerAttr());
    keep(op);
  }
  return FlatSymbolRefAttr::get(symbol);
}
