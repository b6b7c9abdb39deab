//===- ValueCollectives.cpp - what collectives on values become -----------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Order/Passes.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What all actions of a collective are told.
struct Exchange {
  Exchange(Operation *op, dist::AxesAttr axes, ProgramBuilder &out, Attribute source, Attribute target)
      : out(out), source(cast<RefAttr>(source)), target(cast<RefAttr>(target)),
        members(dist::getGrid(op).count(axes.getParts())), group(communicatorName(axes)),
        traffic(axes.getParts().back().axis == Axis::sp ? Traffic::SequenceParallel
                                                        : Traffic::TensorParallel) {}

  void exchange(RefAttr from, RefAttr to, int64_t bytes) {
    out.emit<AllToAllOp>(from, to, bytes, out.nextOrder(), group, kTensorStream).setTraffic(traffic);
  }
  void gather(RefAttr slice, int64_t bytes) {
    out.emit<GatherOp>(slice, target, bytes, TypeAttr(), traffic, out.nextOrder(), group, kTensorStream);
  }
  /// Adds what each member sent, so many elements each: neighbours first, an odd one is carried up (DESIGN
  /// 2.1 rule 4).
  void add(RefAttr parts, int64_t elements, Type element) {
    int64_t bytes = bytesOf(elements, element);
    for (int64_t apart = 1; apart < members; apart *= 2)
      for (int64_t first = 0; first + apart < members; first += 2 * apart)
        out.emit<AddOp>(shifted(parts, first * bytes), shifted(parts, (first + apart) * bytes), elements,
                        element, kComputeStream);
  }
  RefAttr partsBuffer(StringRef name, MemRefType type, int64_t payload) {
    ProgramBuilder::BufferTraits traits;
    traits.payload = payload;
    return out.ref(out.buffer((name + ".parts").str(), type, BufferKind::Buffers, traits));
  }

  ProgramBuilder &out;
  RefAttr source, target;
  int64_t members;
  std::string group;
  Traffic traffic;
};

int64_t operandElements(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
}

template <typename Model, typename Op>
struct ActionsBase : dist::ValueCollectiveOpInterface::ExternalModel<Model, Op> {
  dist::AxesAttr getAxes(Operation *op) const { return cast<Op>(op).getAxes(); }
};

/// What is sent lies as it is made.
template <typename Model, typename Op> struct MovesBase : ActionsBase<Model, Op> {
  bool isSum(Operation *) const { return false; }
  int64_t getBufferElements(Operation *, bool, int64_t elements, int64_t) const { return elements; }
};

/// The parts of a value go to the ranks that add them, and come back as sums.
struct AllReduceActions : ActionsBase<AllReduceActions, dist::AllReduceOp> {
  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef name) const {
    Exchange all(op, getAxes(op), out, source, target);
    Type element = type.getElementType();
    int64_t elements = type.getNumElements() / all.members, bytes = bytesOf(elements, element);
    RefAttr parts = all.partsBuffer(name, type, bytesOf(operandElements(op), element));
    all.exchange(all.source, parts, bytes);
    all.add(parts, elements, element);
    all.gather(parts, bytes);
  }
};

struct AllGatherActions : MovesBase<AllGatherActions, dist::AllGatherOp> {
  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef) const {
    Exchange all(op, getAxes(op), out, source, target);
    all.gather(all.source, bytesOf(operandElements(op), type.getElementType()));
  }
};

/// What is sent is added where it comes: the sum is in front of it.
struct ReduceScatterActions : ActionsBase<ReduceScatterActions, dist::ReduceScatterOp> {
  int64_t getBufferElements(Operation *, bool isResult, int64_t elements, int64_t ranks) const {
    return isResult ? elements * ranks : elements;
  }
  bool isAlike(Operation *) const { return false; }
  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef) const {
    Exchange all(op, getAxes(op), out, source, target);
    Type element = type.getElementType();
    int64_t elements = operandElements(op) / all.members;
    all.exchange(all.source, all.target, bytesOf(elements, element));
    all.add(all.target, elements, element);
  }
};

struct AllToAllActions : MovesBase<AllToAllActions, dist::AllToAllOp> {
  bool isAlike(Operation *) const { return false; }
  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef) const {
    Exchange all(op, getAxes(op), out, source, target);
    all.exchange(all.source, all.target, bytesOf(operandElements(op), type.getElementType()) / all.members);
  }
};
struct ShiftActions : MovesBase<ShiftActions, dist::ShiftOp> {
  bool isAlike(Operation *) const { return false; }
  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef) const {
    Exchange all(op, getAxes(op), out, source, target);
    out.emit<ShiftOp>(all.source, all.target, bytesOf(operandElements(op), type.getElementType()),
                      all.traffic, out.nextOrder(), all.group, kTensorStream);
  }
};
} // namespace

void dsopt::registerCollectiveActions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, dist::DistDialect *) {
    dist::AllReduceOp::attachInterface<AllReduceActions>(*context);
    dist::AllGatherOp::attachInterface<AllGatherActions>(*context);
    dist::ReduceScatterOp::attachInterface<ReduceScatterActions>(*context);
    dist::AllToAllOp::attachInterface<AllToAllActions>(*context);
    dist::ShiftOp::attachInterface<ShiftActions>(*context);
  });
}
