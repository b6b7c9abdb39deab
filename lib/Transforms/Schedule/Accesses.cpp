//===- Accesses.cpp - which bytes an action reads and writes --------------===//

#include "Accesses.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Optimizers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static constexpr int64_t kNormBytes = kNormWords * sizeof(int64_t);

AccessAnalysis::AccessAnalysis(ModuleOp module) : members(module) {
  for (Operation &op : *module.getBody())
    if (isa<func::FuncOp, dist::BucketOp>(op))
      symbols[SymbolTable::getSymbolName(&op)] = &op;
}

dist::BucketOp AccessAnalysis::bucket(StringAttr name) {
  return dyn_cast_or_null<dist::BucketOp>(symbols.lookup(name));
}

BufferOp AccessAnalysis::buffer(ProgramOp program, StringAttr name) {
  auto [buffers, isNew] = programs.try_emplace(program);
  if (isNew)
    for (auto buffer : program.getBody().front().getOps<BufferOp>())
      buffers->second[buffer.getSymNameAttr()] = buffer;
  return buffers->second.lookup(name);
}

BufferOp AccessAnalysis::scalars(ProgramOp program) {
  auto [found, isNew] = scalarsOf.try_emplace(program);
  if (isNew)
    for (auto buffer : program.getBody().front().getOps<BufferOp>())
      if (buffer.getRole() == BufferRole::Scalars)
        found->second = buffer;
  return found->second;
}

ArrayRef<unsigned> AccessAnalysis::gradients(RunOp run) {
  const Segment *segment = lookup(run.getSegmentAttr().getAttr());
  return segment ? ArrayRef<unsigned>(segment->gradients) : ArrayRef<unsigned>();
}

const AccessAnalysis::Segment *AccessAnalysis::lookup(StringAttr name) {
  if (auto it = segments.find(name); it != segments.end())
    return &it->second;
  auto function = dyn_cast_or_null<func::FuncOp>(symbols.lookup(name));
  if (!function || !function->hasAttr(kSegmentAttr))
    return nullptr;
  Segment segment;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto access = function.getArgAttrOfType<AccessModeAttr>(i, kAccessAttr);
    AccessMode mode = access ? access.getValue() : AccessMode::Update;
    segment.arguments.push_back({bytesOf(type), mode != AccessMode::Write, mode != AccessMode::Read});
    if (function.getArgAttr(i, kGradientAttr))
      segment.gradients.push_back(i);
  }
  if (auto temp = function->getAttrOfType<IntegerAttr>(kTempAttr))
    segment.temp = temp.getInt();
  return &segments.try_emplace(name, std::move(segment)).first->second;
}

void AccessAnalysis::add(RefAttr ref, int64_t bytes, bool reads, bool writes,
                         SmallVectorImpl<Access> &accesses) {
  int64_t begin = ref.getOffset(), spread = ref.getPerRank() * (ranks() - 1);
  accesses.push_back({ref.getBuffer().getAttr(), ref.getSlot(), begin, begin + spread + bytes, reads, writes,
                      /*exact=*/spread == 0});
}

FailureOr<ArrayRef<Access>> AccessAnalysis::of(Operation *action) {
  ArrayRef<Access> *known = nullptr;
  if (auto run = dyn_cast<RunOp>(action)) {
    known = &runs[{run.getSegmentAttr(), run.getBuffers(), run.getTempAttr(), run.getAccumulate()}];
    if (!known->empty())
      return *known;
  }
  SmallVector<Access, 0> &list = lists.emplace_back();
  if (failed(collect(action, list)))
    return failure();
  if (known)
    *known = list;
  return ArrayRef<Access>(list);
}

LogicalResult AccessAnalysis::collect(Operation *action, SmallVectorImpl<Access> &accesses) {
  auto refs = [](ArrayAttr array) { return array.getAsRange<RefAttr>(); };
  auto scalars = [&](bool reads, bool writes) {
    if (BufferOp buffer = this->scalars(action->getParentOfType<ProgramOp>()))
      accesses.push_back(
          {buffer.getSymNameAttr(), 0, 0, bytesOf(buffer.getType()), reads, writes, /*exact=*/true});
  };
  int64_t count = 1; // of the members that a collective joins
  if (getCommunicator(action)) {
    FailureOr<ArrayRef<SmallVector<int64_t>>> groups = members.groups(action);
    if (failed(groups))
      return failure();
    count = groups->front().size();
  }
  return TypeSwitch<Operation *, LogicalResult>(action)
      .Case([&](InputOp op) {
        BufferOp buffer =
            this->buffer(op->getParentOfType<ProgramOp>(), op.getTarget().getBuffer().getAttr());
        if (!buffer)
          return op.emitOpError("names ")
                     << op.getTarget().getBuffer() << ", which is no buffer of its program",
                 failure();
        add(op.getTarget(), bytesOf(buffer.getType()), false, true, accesses);
        return success();
      })
      .Case([&](RunOp op) -> LogicalResult {
        const Segment *segment = lookup(op.getSegmentAttr().getAttr());
        if (!segment)
          return op.emitOpError("runs ") << op.getSegmentAttr() << ", which is no segment of this module";
        if (segment->arguments.size() != op.getBuffers().size())
          return op.emitOpError("passes ")
                 << op.getBuffers().size() << " buffers, expected " << segment->arguments.size();
        for (auto [ref, argument] : llvm::zip(refs(op.getBuffers()), segment->arguments)) {
          bool updates = argument.reads && argument.writes;
          add(ref, argument.bytes, argument.reads && (!updates || op.getAccumulate()), argument.writes,
              accesses);
        }
        if (segment->temp && !op.getTemp())
          return op.emitOpError("has no temp, expected ") << segment->temp << " bytes of scratch";
        if (op.getTemp())
          add(*op.getTemp(), segment->temp, false, true, accesses);
        return success();
      })
      .Case([&](GatherOp op) {
        int64_t bytes = op.getBytes();
        // In place, the rank's own slice is kept: the target is read as well.
        bool inPlace = op.getSlice().getBuffer() == op.getTarget().getBuffer();
        if (!inPlace)
          add(op.getSlice(), bytes, true, false, accesses);
        add(op.getTarget(), bytes * count, inPlace, true, accesses);
        return success();
      })
      .Case([&](ReduceOp op) {
        int64_t bytes = (int64_t)op.getElements() * graph::elementBytes(op.getType());
        add(op.getWhole(), bytes * count, true, false, accesses);
        add(op.getTarget(), bytes, op.getAccumulate(), true, accesses);
        return success();
      })
      .Case([&](AllToAllOp op) {
        add(op.getSource(), (int64_t)op.getBytes() * count, true, false, accesses);
        add(op.getTarget(), (int64_t)op.getBytes() * count, false, true, accesses);
        return success();
      })
      .Case([&](AddOp op) {
        int64_t bytes = (int64_t)op.getElements() * graph::elementBytes(op.getType());
        add(op.getSource(), bytes, true, false, accesses);
        add(op.getTarget(), bytes, true, true, accesses);
        return success();
      })
      .Case([&](SendOp op) { return add(op.getSource(), op.getBytes(), true, false, accesses), success(); })
      .Case([&](RecvOp op) { return add(op.getTarget(), op.getBytes(), false, true, accesses), success(); })
      .Case([&](NormOp op) -> LogicalResult {
        dist::BucketOp bucket = this->bucket(op.getBucketAttr().getAttr());
        if (!bucket)
          return op.emitOpError("names ") << op.getBucketAttr() << ", which is no bucket of this module";
        add(op.getGradient(), (int64_t)bucket.getSlice() * graph::elementBytes(bucket.getGradientType()),
            true, false, accesses);
        add(op.getRecord(), kNormBytes, false, true, accesses);
        return success();
      })
      .Case([&](AgreeOp op) -> LogicalResult {
        for (RefAttr ref : refs(op.getNorms()))
          add(ref, kNormBytes, true, false, accesses);
        for (RefAttr ref : refs(op.getLosses()))
          add(ref, sizeof(float), true, false, accesses);
        scalars(/*reads=*/false, /*writes=*/true);
        return success();
      })
      .Case([&](UpdateOp op) -> LogicalResult {
        dist::BucketOp bucket = this->bucket(op.getBucketAttr().getAttr());
        if (!bucket)
          return op.emitOpError("names ") << op.getBucketAttr() << ", which is no bucket of this module";
        int64_t elements = op.getElements();
        SmallVector<Type> types{bucket.getType(), bucket.getGradientType()};
        if (auto states = bucket.getStates())
          for (auto state : states->getAsRange<dist::StateAttr>())
            types.push_back(state.getType());
        if (types.size() != op.getBuffers().size())
          return op.emitOpError("has ")
                 << op.getBuffers().size() << " buffers, expected " << types.size()
                 << ": the parameter, its gradient and what @" << bucket.getSymName() << " names as states";
        for (auto [i, ref, type] : llvm::enumerate(refs(op.getBuffers()), types))
          add(ref, elements * graph::elementBytes(type), true, /*writes=*/i != kUpdateGradient, accesses);
        scalars(/*reads=*/true, /*writes=*/false);
        return success();
      })
      .Case([&](MapOp op) -> LogicalResult {
        auto kernel = dyn_cast_or_null<func::FuncOp>(symbols.lookup(op.getKernelAttr().getAttr()));
        auto iteration = kernel ? kernel->getAttrOfType<graph::IterationAttr>(graph::kIterateAttr) : nullptr;
        if (!iteration || iteration.getValue() != graph::Iteration::Flat)
          return op.emitOpError("runs ") << op.getKernelAttr() << ", which is no flat kernel of this module";
        auto inPlace = kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kInPlaceAttr);
        SmallVector<Type> types(kernel.getArgumentTypes());
        if (!inPlace)
          llvm::append_range(types, kernel.getResultTypes());
        if (types.size() != op.getBuffers().size())
          return op.emitOpError("has ") << op.getBuffers().size() << " buffers, expected " << types.size()
                                        << ", as " << op.getKernelAttr() << " takes";
        for (auto [i, ref, type] : llvm::enumerate(refs(op.getBuffers()), types)) {
          bool operand = i < kernel.getNumArguments();
          bool result = inPlace ? llvm::is_contained(inPlace.asArrayRef(), (int64_t)i) : !operand;
          add(ref, (int64_t)op.getElements() * graph::elementBytes(getElementTypeOrSelf(type)), operand,
              result, accesses);
        }
        return success();
      })
      .Case([&](FoldOp op) -> LogicalResult {
        BufferOp buffer =
            this->buffer(op->getParentOfType<ProgramOp>(), op.getStatistics().getBuffer().getAttr());
        if (!buffer)
          return op.emitOpError("names ")
                 << op.getStatistics().getBuffer() << ", which is no buffer of its program";
        if (op.getElements().size() != op.getTargets().size() ||
            op.getPlaces().size() != op.getTargets().size() ||
            op.getMomenta().size() != op.getTargets().size())
          return op.emitOpError("has ")
                 << op.getTargets().size() << " targets, expected as many places, elements and momenta";
        add(op.getStatistics(), bytesOf(buffer.getType()), true, false, accesses);
        for (auto [ref, elements] : llvm::zip(refs(op.getTargets()), op.getElements()))
          add(ref, elements * (int64_t)sizeof(float), true, true, accesses);
        // It follows what the agreement decides.
        scalars(/*reads=*/true, /*writes=*/false);
        return success();
      })
      .Default([](Operation *op) -> LogicalResult {
        return op->emitOpError(
            "is an action whose accesses nobody knows, so nothing can be ordered behind it");
      });
}
