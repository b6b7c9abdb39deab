//===- Accesses.cpp - which bytes an action reads and writes --------------===//

#include "dsopt/Analysis/Exec/Accesses.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Optimizers.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

AccessAnalysis::AccessAnalysis(ModuleOp module) : members(module), streams(module), module(module) {
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
  const SegmentUse *use = segment(run.getSegmentAttr().getAttr());
  return use ? ArrayRef<unsigned>(use->gradients) : ArrayRef<unsigned>();
}

std::optional<int64_t> AccessAnalysis::slotBytes(Operation *action, StringAttr name) {
  BufferOp found = buffer(action->getParentOfType<ProgramOp>(), name);
  return found ? std::optional(bytesOf(found.getType())) : std::nullopt;
}

const SegmentUse *AccessAnalysis::segment(StringAttr name) {
  auto function = dyn_cast_or_null<func::FuncOp>(symbols.lookup(name));
  if (!function || !function->hasAttr(kSegmentAttr))
    return nullptr;
  auto [known, isNew] = segments.try_emplace(name);
  SegmentUse &segment = known->second;
  if (!isNew)
    return &segment;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto access = function.getArgAttrOfType<AccessModeAttr>(i, kAccessAttr);
    AccessMode mode = access ? access.getValue() : AccessMode::Update;
    segment.arguments.push_back(
        {bytesOf(type), mode != AccessMode::Write, mode != AccessMode::Read, mode == AccessMode::Add});
    if (function.getArgAttr(i, kGradientAttr))
      segment.gradients.push_back(i);
  }
  if (auto temp = function->getAttrOfType<IntegerAttr>(kTempAttr))
    segment.temp = temp.getInt();
  return &segment;
}

const SegmentUse *AccessAnalysis::kernel(SymbolRefAttr name) {
  if (auto known = kernels.find(name); known != kernels.end())
    return &known->second;
  auto function = tables.lookupSymbolIn<func::FuncOp>(module, name);
  if (function && function->hasAttr(kPacksAttr)) {
    SegmentUse &packing = kernels[name];
    for (auto [i, type] :
         llvm::enumerate(llvm::make_filter_range(function.getArgumentTypes(), llvm::IsaPred<MemRefType>)))
      packing.arguments.push_back({bytesOf(type), /*reads=*/i == 0, /*writes=*/i == 1, /*always=*/false,
                                   /*whole=*/true});
    return &packing;
  }
  auto iteration = function ? function->getAttrOfType<graph::IterationAttr>(graph::kIterateAttr) : nullptr;
  if (!iteration)
    return nullptr;
  bool isColumns = iteration.getValue() == graph::Iteration::Columns;
  bool isFlat = iteration.getValue() == graph::Iteration::Flat;
  auto range = function->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
  ArrayRef<int64_t> rows = range && !isFlat ? range.asArrayRef() : ArrayRef<int64_t>();
  auto use = [&](Type type, bool reads, bool writes) {
    if (isFlat)
      return BufferUse{graph::elementBytes(getElementTypeOrSelf(type)), reads, writes};
    BufferUse buffer{graph::numBytes(type), reads, writes};
    // Sums have an element for each column.
    if (isColumns) {
      buffer.whole = !writes;
      buffer.bytes /= writes ? ShapedType::getNumElements(range.asArrayRef()) : 1;
      return buffer;
    }
    buffer.whole = cast<ShapedType>(type).getShape().take_front(rows.size()) != rows;
    if (!buffer.whole)
      buffer.bytes /= ShapedType::getNumElements(rows);
    return buffer;
  };
  SegmentUse &kernel = kernels[name];
  auto inPlace = function->getAttrOfType<DenseI64ArrayAttr>(graph::kInPlaceAttr);
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    kernel.arguments.push_back(
        use(type, true, inPlace && llvm::is_contained(inPlace.asArrayRef(), (int64_t)i)));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!inPlace || inPlace[i] >= function.getNumArguments())
      kernel.arguments.push_back(use(type, false, true));
  return &kernel;
}

const BucketUse *AccessAnalysis::bucketUse(StringAttr name) {
  dist::BucketOp op = bucket(name);
  if (!op)
    return nullptr;
  auto [known, isNew] = buckets.try_emplace(name);
  BucketUse &use = known->second;
  if (!isNew)
    return &use;
  use.slice = op.getSlice();
  use.padded = op.getPadded();
  use.gradientBytes = graph::elementBytes(op.getGradientType());
  use.parameters = op.getRanges().size();
  use.hasMaster = op.getMaster().has_value();
  SmallVector<Type> types{op.getType(), op.getGradientType()};
  if (auto master = op.getMaster())
    types.push_back(*master);
  if (auto states = op.getStates())
    for (auto state : states->getAsRange<dist::StateAttr>())
      types.push_back(state.getType());
  // Parameters that have a master follow from it.
  for (auto [i, type] : llvm::enumerate(types))
    use.operands.push_back(
        {graph::elementBytes(type), /*reads=*/i > 0 || !op.getMaster(), /*writes=*/i != kUpdateGradient});
  return &use;
}

FailureOr<int64_t> AccessAnalysis::countMembers(Operation *collective) { return members.count(collective); }

void AccessAnalysis::add(RefAttr ref, int64_t bytes, bool reads, bool writes) {
  if (touched) {
    AccessMode mode = !writes ? AccessMode::Read : reads ? AccessMode::Update : AccessMode::Write;
    touched->push_back(TouchAttr::get(module.getContext(), ref, bytes, mode));
    return;
  }
  int64_t begin = ref.getOffset(), spread = members.grid().spread(ref.getSteps());
  StringAttr buffer = ref.getBuffer().getAttr();
  list.push_back({buffer, ref.getSlot(), begin, begin + spread + bytes, place(buffer, ref.getSlot()), reads,
                  writes, /*exact=*/spread == 0});
}

void AccessAnalysis::addScalars(Operation *action, bool reads, bool writes) {
  if (BufferOp buffer = scalars(action->getParentOfType<ProgramOp>()))
    add(RefAttr::get(module.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0, 0, {}),
        bytesOf(buffer.getType()), reads, writes);
}

FailureOr<ArrayRef<Access>> AccessAnalysis::of(Operation *op) {
  auto action = dyn_cast<ActionOpInterface>(op);
  if (!action)
    return op->emitOpError("is no action: nothing can be ordered behind it"), failure();
  ArrayRef<Access> *known = nullptr;
  if (auto run = dyn_cast<RunOp>(op)) {
    known = &runs[{run.getSegmentAttr(), run.getBuffers(), run.getTempAttr(), run.getAccumulate()}];
    if (!known->empty())
      return *known;
  }
  list.clear();
  if (failed(action.collectAccesses(*this)))
    return failure();
  ArrayRef<Access> kept = ArrayRef<Access>(list).copy(lists);
  if (known)
    *known = kept;
  return kept;
}

FailureOr<ArrayAttr> AccessAnalysis::touches(ActionOpInterface action) {
  SmallVector<Attribute> found;
  touched = &found;
  LogicalResult collected = action.collectAccesses(*this);
  touched = nullptr;
  if (failed(collected))
    return failure();
  return ArrayAttr::get(module.getContext(), found);
}
