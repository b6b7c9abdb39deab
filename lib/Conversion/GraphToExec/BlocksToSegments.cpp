//===- BlocksToSegments.cpp - functions of blocks to segments -------------===//
//
// Each function of tensors becomes one of memrefs (see Passes.td): first every
// value gets a home (a result's buffer, a gradient or the scratch), then the
// operations are built in order on those homes.
//
//===----------------------------------------------------------------------===//

#include "DeviceTimes.h"
#include "PackTemporaries.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dsopt {
#define GEN_PASS_DEF_BLOCKSTOSEGMENTS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// Columns that a thread takes at least of a kernel that runs over columns.
constexpr int64_t kColumnGrain = 64;

MemRefType toMemRef(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// The value whose bytes hold `value`.
Value rootOf(Value value) { return graph::locate(value).root; }

/// The module's constants, one symbol for each content.
class Constants {
public:
  explicit Constants(ModuleOp module) : module(module), symbols(module) {
    for (auto global : module.getOps<memref::GlobalOp>())
      if (global.getConstant() && global.getInitialValue())
        names.try_emplace(*global.getInitialValue(), global.getSymNameAttr());
  }

  FlatSymbolRefAttr get(Location loc, ElementsAttr value) {
    StringAttr &name = names[value];
    if (!name) {
      OpBuilder builder(module.getContext());
      auto type = cast<ShapedType>(value.getType());
      std::string symbol;
      do
        symbol = "const_" + std::to_string(next++);
      while (symbols.lookup(symbol));
      auto global = memref::GlobalOp::create(builder, loc, symbol, builder.getStringAttr("private"),
                                             MemRefType::get(type.getShape(), type.getElementType()), value,
                                             /*constant=*/true, builder.getI64IntegerAttr(64));
      name = symbols.insert(global);
    }
    return FlatSymbolRefAttr::get(name);
  }

private:
  ModuleOp module;
  SymbolTable symbols;
  DenseMap<Attribute, StringAttr> names;
  int64_t next = 0;
};

/// Turns one function into a segment.
class SegmentBuilder {
public:
  SegmentBuilder(func::FuncOp function, Constants &constants, SymbolTableCollection &tables,
                 graph::FlopCounter &counter, RoutineTarget target)
      : function(function), constants(constants), tables(tables), builder(function.getContext()),
        target(target), counter(counter) {}

  FailureOr<func::FuncOp> run() {
    if (!function.getBody().hasOneBlock())
      return function.emitError("has ") << function.getBody().getBlocks().size() << " blocks, expected one";
    if (failed(counter.count(function)) || failed(collectArguments()) || failed(placeValues()))
      return failure();
    build();
    return segment;
  }

private:
  struct Argument {
    MemRefType type;
    exec::AccessMode access;
    StringRef key; ///< name of the attribute that says what it is, if any
    FlatSymbolRefAttr symbol;
    DictionaryAttr attrs; ///< of the tensor it stands for
  };
  struct Scratch {
    int64_t bytes, offset;
  };

  LogicalResult collectArguments();
  LogicalResult collectResults(func::ReturnOp ret);
  LogicalResult placeValues();
  LogicalResult checkOps();
  void packValues();
  LogicalResult checkTypes(Operation &op);
  LogicalResult checkLayouts(Operation &op);
  graph::AccumulateOp fusedAccumulation(Value value);
  /// The element type of the accumulator.
  Type gradientType(graph::AccumulateOp accumulate) {
    auto state = tables.lookupNearestSymbolFrom<graph::StateOp>(accumulate, accumulate.getStateAttr());
    return getElementTypeOrSelf(state.getType());
  }
  void build();
  void buildOp(Operation &op);
  Operation *buildRoutine(RoutineOpInterface routine);
  Value homeOrGradient(Value value);
  int64_t placeInGradients(RoutineOpInterface routine);
  Value workspace(Operation &op);
  Value home(Value value);
  Value viewAs(Location loc, Value memref, MemRefType type);

  Value argument(unsigned index) { return segment.getArgument(index); }

  func::FuncOp function, segment;
  Constants &constants;
  SymbolTableCollection &tables;
  OpBuilder builder;
  RoutineTarget target; ///< that routines' scratch has room for

  SmallVector<Argument> arguments;
  DenseMap<Value, unsigned> argumentOf; ///< of results, reads and constants
  SmallVector<unsigned> replaced;       ///< arguments that the last results replace
  DenseMap<Attribute, unsigned> parameters, gradients, caches, constantArguments;
  DenseMap<Value, graph::AccumulateOp> fused; ///< results of routines computed in a gradient
  DenseMap<Value, int64_t> offsets;           ///< of temporaries
  DenseMap<Value, unsigned> hosted;           ///< temporaries in results that are written later
  DenseMap<Operation *, Scratch> workspaces;  ///< of routines
  DenseMap<Value, Value> homes;               ///< what was built
  DenseMap<Value, Operation *> calls;         ///< that compute results of routines
  graph::FlopCounter &counter;
  int64_t tempBytes = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

LogicalResult SegmentBuilder::collectResults(func::ReturnOp ret) {
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    Value root = rootOf(value);
    Operation *op = root.getDefiningOp();
    if (!op || isa<graph::ReadOp, graph::ConstantOp>(op))
      return ret.emitError("result ") << index << " is an argument, a parameter or a constant of the block, "
                                      << "expected a value that the block computes";
    // What replaces a state is made beside it: the old one is read until then.
    if (index >= function.getNumResults() - replaced.size())
      continue;
    if (!argumentOf.try_emplace(root, arguments.size()).second)
      return ret.emitError("result ")
             << index << " has the bytes of another result, expected a value of its own";
    arguments.push_back(
        {toMemRef(value.getType()), exec::AccessMode::Write, {}, {}, function.getResultAttrDict(index)});
  }
  return success();
}

LogicalResult SegmentBuilder::collectArguments() {
  Block &body = function.getBody().front();
  for (BlockArgument input : body.getArguments()) {
    bool isState = function.getArgAttr(input.getArgNumber(), graph::kWholeStateAttr) != Attribute();
    if (isState)
      replaced.push_back(arguments.size());
    argumentOf[input] = arguments.size();
    arguments.push_back({toMemRef(input.getType()),
                         isState ? exec::AccessMode::Update : exec::AccessMode::Read,
                         {},
                         {},
                         function.getArgAttrDict(input.getArgNumber())});
  }
  if (failed(collectResults(cast<func::ReturnOp>(body.getTerminator()))))
    return failure();

  auto add = [&](DenseMap<Attribute, unsigned> &known, Argument argument) {
    auto [it, isNew] = known.try_emplace(argument.symbol, arguments.size());
    if (isNew)
      arguments.push_back(argument);
    return it->second;
  };
  for (auto read : body.getOps<graph::ReadOp>())
    argumentOf[read.getResult()] = add(
        parameters,
        {toMemRef(read.getType()), exec::AccessMode::Read, exec::kParameterAttr, read.getStateAttr(), {}});
  for (auto accumulate : body.getOps<graph::AccumulateOp>()) {
    auto state = accumulate.getStateAttr();
    if (gradients.contains(state))
      return accumulate.emitOpError("adds to ")
             << state << " a second time in this block, expected one gradient";
    if (Type type = getElementTypeOrSelf(accumulate.getValue().getType()); !type.isF32())
      return accumulate.emitOpError("has a gradient of ") << type << ", expected f32";
    auto shape = cast<RankedTensorType>(accumulate.getValue().getType()).getShape();
    add(gradients, {MemRefType::get(shape, gradientType(accumulate)),
                    exec::AccessMode::Update,
                    exec::kGradientAttr,
                    state,
                    {}});
  }
  for (auto caching : body.getOps<CachingOpInterface>())
    for (const KeptRows &kept : caching.getCaches()) {
      auto cache = tables.lookupNearestSymbolFrom<graph::CacheOp>(caching, kept.cache);
      auto type = MemRefType::get(cast<ShapedType>(cache.getType()).getShape(),
                                  getElementTypeOrSelf(kept.rows.getType()));
      add(caches, {type, exec::AccessMode::Add, exec::kCacheAttr, kept.cache, {}});
    }
  for (auto constant : body.getOps<graph::ConstantOp>())
    argumentOf[constant.getResult()] =
        add(constantArguments, {toMemRef(constant.getType()),
                                exec::AccessMode::Read,
                                exec::kConstantAttr,
                                constants.get(constant.getLoc(), constant.getValue()),
                                {}});
  return success();
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

LogicalResult SegmentBuilder::checkTypes(Operation &op) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<graph::ReadOp, graph::AccumulateOp, graph::ReshapeOp, graph::ConstantOp, func::ReturnOp>(
          [](auto) { return success(); })
      .Case<graph::TransposeOp, graph::SliceOp, graph::ConcatOp>([&](auto) -> LogicalResult {
        if (graph::viewOf(&op) == graph::View::None)
          return op.emitOpError("is in a block and no view, expected it in a kernel");
        return success();
      })
      .Case<RoutineOpInterface>([](RoutineOpInterface routine) { return routine.verifyRoutine(); })
      .Case<graph::KernelOp>([&](graph::KernelOp kernel) -> LogicalResult {
        auto callee = tables.lookupNearestSymbolFrom<func::FuncOp>(kernel, kernel.getCalleeAttr());
        if (!callee || !callee->hasAttrOfType<graph::IterationAttr>(graph::kIterateAttr) ||
            !callee->hasAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr))
          return op.emitOpError("calls ") << kernel.getCalleeAttr() << ", expected a kernel function with "
                                          << graph::kIterateAttr << " and " << graph::kRangeAttr;
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("is in a block, expected kernels, routines, reads and accumulations");
      });
}

/// What an operation reads and writes lies as it can take it, and a value is written to one place.
LogicalResult SegmentBuilder::checkLayouts(Operation &op) {
  for (OpOperand &operand : op.getOpOperands()) {
    std::optional<graph::Layout> layout = graph::locate(operand.get()).layout;
    if (!layout || !graph::canRead(operand, *layout))
      return op.emitOpError("takes operand ")
             << operand.getOperandNumber() << " through views under strides that it cannot read";
  }
  for (OpResult result : op.getResults()) {
    auto writes = llvm::count_if(result.getUsers(), [](Operation *user) { return graph::isWriteView(user); });
    std::optional<graph::Layout> layout = graph::locate(result).layout;
    if (writes > 1 || !layout || !graph::canWrite(result, *layout))
      return op.emitOpError("gives result ")
             << result.getResultNumber()
             << (writes > 1 ? " to several write views, expected one"
                            : " to a write view under strides that it cannot write");
  }
  return success();
}

/// The accumulation that is the only use of a routine's result (through reshapes).
graph::AccumulateOp SegmentBuilder::fusedAccumulation(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto accumulate = dyn_cast<graph::AccumulateOp>(user))
      return accumulate;
    auto reshape = dyn_cast<graph::ReshapeOp>(user);
    if (!reshape)
      return {};
    value = reshape.getResult();
  }
  return {};
}

/// Notes which results are computed in the gradients they are added to; returns the bytes of scratch that
/// the routine needs for all threads.
int64_t SegmentBuilder::placeInGradients(RoutineOpInterface routine) {
  SmallVector<Type> types;
  for (OpResult result : routine->getResults()) {
    auto accumulate =
        routine.canAccumulate(result.getResultNumber()) ? fusedAccumulation(result) : graph::AccumulateOp();
    if (accumulate)
      fused[result] = accumulate;
    types.push_back(accumulate ? gradientType(accumulate) : Type());
  }
  return routine.getWorkspaceBytes(target, types);
}

LogicalResult SegmentBuilder::checkOps() {
  for (Operation &op : function.getBody().front())
    if (failed(checkTypes(op)) ||
        (!graph::isReadView(&op) && !graph::isWriteView(&op) && failed(checkLayouts(op))))
      return failure();
  return success();
}

/// Places what has no buffer of its own, in the present order of operations.
void SegmentBuilder::packValues() {
  SmallVector<exec::Temporary> temporaries;
  SmallVector<std::pair<Value, size_t>> values;
  SmallVector<std::pair<Operation *, size_t>> scratch;
  DenseMap<Value, size_t> indices;
  SmallVector<exec::Host> hosts; ///< results, free before they are written
  SmallVector<unsigned> hostArguments;
  DenseSet<Value> written;
  for (auto [position, op] : llvm::enumerate(function.getBody().front())) {
    if (graph::isReadView(&op) || graph::isWriteView(&op))
      continue;
    for (Value operand : op.getOperands())
      if (auto it = indices.find(rootOf(operand)); it != indices.end())
        temporaries[it->second].last = position;
    auto routine = dyn_cast<RoutineOpInterface>(op);
    if (!routine && !isa<graph::KernelOp>(op))
      continue;
    if (int64_t bytes = routine ? placeInGradients(routine) : 0) {
      scratch.emplace_back(&op, temporaries.size());
      temporaries.push_back({bytes, int64_t(position), int64_t(position)});
    }
    for (Value result : op.getResults()) {
      if (fused.contains(result))
        continue;
      Value root = rootOf(result);
      if (auto it = argumentOf.find(root); it != argumentOf.end() && written.insert(root).second) {
        Type type = arguments[it->second].type.getElementType();
        hosts.push_back(
            {exec::bytesOf(arguments[it->second].type), int64_t(position), type.getAsOpaquePointer()});
        hostArguments.push_back(it->second);
      }
      if (argumentOf.contains(root) || !indices.try_emplace(root, temporaries.size()).second)
        continue;
      values.emplace_back(root, temporaries.size());
      temporaries.push_back({graph::numBytes(root.getType()), int64_t(position), int64_t(position),
                             getElementTypeOrSelf(root.getType()).getAsOpaquePointer()});
    }
  }
  tempBytes = exec::packTemporaries(temporaries, hosts);
  hosted.clear();
  for (auto [value, index] : values) {
    offsets[value] = temporaries[index].offset;
    if (temporaries[index].host >= 0)
      hosted[value] = hostArguments[temporaries[index].host];
  }
  for (auto [op, index] : scratch)
    workspaces[op] = {temporaries[index].bytes, temporaries[index].offset};
}

/// What only leaves the segment is computed last where that takes less scratch: until then others can lie in
/// its buffer.
LogicalResult SegmentBuilder::placeValues() {
  if (failed(checkOps()))
    return failure();
  packValues();
  Block &body = function.getBody().front();
  Operation *end = body.getTerminator();
  auto inOrder = llvm::map_to_vector(body.without_terminator(), [](Operation &op) { return &op; });
  auto leaves = llvm::to_vector(llvm::make_filter_range(inOrder, [&](Operation *op) {
    return op->getNumResults() > 0 && isa<RoutineOpInterface, graph::KernelOp>(op) &&
           llvm::all_of(op->getUsers(), [&](Operation *user) { return user == end; });
  }));
  int64_t bytes = tempBytes;
  if (!bytes || leaves.empty())
    return success();
  for (Operation *op : leaves)
    op->moveBefore(end);
  packValues();
  if (tempBytes < bytes)
    return success();
  for (Operation *op : inOrder)
    op->moveBefore(end);
  packValues();
  return success();
}

//===----------------------------------------------------------------------===//
// The segment
//===----------------------------------------------------------------------===//

Value SegmentBuilder::viewAs(Location loc, Value memref, MemRefType type) {
  return memref.getType() == type ? memref : Value(exec::ViewOp::create(builder, loc, type, memref));
}

/// Where a value lies, in the shape of its type; a view is built where it is first needed.
Value SegmentBuilder::home(Value value) {
  if (Value known = homes.lookup(value))
    return known;
  auto [root, layout] = graph::locate(value); // checkLayouts has seen that there is one
  Value memref;
  if (auto it = argumentOf.find(root); it != argumentOf.end())
    memref = argument(it->second);
  else if (Value known = homes.lookup(root))
    memref = known;
  else if (auto it = hosted.find(root); it != hosted.end())
    memref = homes[root] = viewAs(value.getLoc(), argument(it->second), toMemRef(root.getType()));
  else
    memref = homes[root] =
        exec::TempOp::create(builder, value.getLoc(), toMemRef(root.getType()), offsets.lookup(root));
  MemRefType type = toMemRef(value.getType());
  if (!layout->isContiguous())
    type = MemRefType::get(type.getShape(), type.getElementType(),
                           StridedLayoutAttr::get(type.getContext(), layout->offset, layout->strides));
  return homes[value] = viewAs(value.getLoc(), memref, type);
}

/// Where a result is written: its own home, or the gradient that it is added to.
Value SegmentBuilder::homeOrGradient(Value value) {
  auto accumulate = fused.lookup(value);
  if (!accumulate)
    return home(value);
  Value gradient = argument(gradients.lookup(accumulate.getStateAttr()));
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  return viewAs(value.getLoc(), gradient, MemRefType::get(shape, getElementTypeOrSelf(gradient.getType())));
}

/// A routine's scratch, or null.
Value SegmentBuilder::workspace(Operation &op) {
  auto it = workspaces.find(&op);
  if (it == workspaces.end())
    return {};
  return exec::TempOp::create(builder, op.getLoc(), MemRefType::get({it->second.bytes}, builder.getI8Type()),
                              it->second.offset);
}

Operation *SegmentBuilder::buildRoutine(RoutineOpInterface routine) {
  auto of = [&](Value value) { return value ? homeOrGradient(value) : Value(); };
  auto accumulates = [&](Value value) { return fused.contains(value); };
  auto cache = [&](FlatSymbolRefAttr symbol) { return argument(caches.lookup(symbol)); };
  Operation *call = routine.buildCall(builder, {of, accumulates, workspace(*routine), cache}, target);
  for (Value result : routine->getResults())
    calls[result] = call;
  return call;
}

void SegmentBuilder::buildOp(Operation &op) {
  Location loc = op.getLoc();
  // What becomes no call of its own is part of another's, or costs nothing.
  Operation *call =
      TypeSwitch<Operation *, Operation *>(&op)
          .Case<RoutineOpInterface>([&](RoutineOpInterface routine) { return buildRoutine(routine); })
          .Case<graph::KernelOp>([&](graph::KernelOp kernel) {
            auto callee = tables.lookupNearestSymbolFrom<func::FuncOp>(kernel, kernel.getCalleeAttr());
            int64_t range = 1;
            for (int64_t extent : callee->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr).asArrayRef())
              range *= extent;
            bool columns = graph::getIteration(callee) == graph::Iteration::Columns;
            auto inputs = llvm::map_to_vector(kernel.getInputs(), [&](Value value) { return home(value); });
            auto outputs = llvm::map_to_vector(kernel.getOutputs(), [&](Value value) { return home(value); });
            return exec::LaunchOp::create(builder, loc, kernel.getCalleeAttr(), inputs, outputs,
                                          builder.getI64IntegerAttr(range),
                                          builder.getI64IntegerAttr(columns ? kColumnGrain : 1));
          })
          .Case<graph::AccumulateOp>([&](graph::AccumulateOp accumulate) -> Operation * {
            Value root = rootOf(accumulate.getValue());
            if (fused.contains(root))
              return calls.lookup(root);
            return exec::AccumulateOp::create(builder, loc, home(accumulate.getValue()),
                                              argument(gradients.lookup(accumulate.getStateAttr())));
          })
          .Default([](Operation *) { return nullptr; });
  if (!call)
    return;
  auto before = call->getAttrOfType<IntegerAttr>(exec::kFlopsAttr);
  call->setAttr(exec::kFlopsAttr,
                builder.getI64IntegerAttr(*counter.count(&op) + (before ? before.getInt() : 0)));
}

void SegmentBuilder::build() {
  builder.setInsertionPoint(function);
  auto types = llvm::map_to_vector(arguments, [](const Argument &argument) -> Type { return argument.type; });
  segment = func::FuncOp::create(builder, function.getLoc(), function.getName(),
                                 builder.getFunctionType(types, {}));
  segment->setDiscardableAttrs(function->getDiscardableAttrDictionary());
  segment.setVisibility(function.getVisibility());
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    NamedAttrList attrs(argument.attrs);
    attrs.set(exec::kAccessAttr, exec::AccessModeAttr::get(builder.getContext(), argument.access));
    if (argument.symbol)
      attrs.set(argument.key, argument.symbol);
    segment.setArgAttrs(index, attrs.getDictionary(builder.getContext()));
  }

  builder.setInsertionPointToStart(segment.addEntryBlock());
  for (Operation &op : function.getBody().front())
    buildOp(op);
  Operation *end = function.getBody().front().getTerminator();
  // Stored, as no transform accumulates.
  for (auto [value, state] : llvm::zip_equal(end->getOperands().take_back(replaced.size()), replaced))
    exec::AccumulateOp::create(builder, end->getLoc(), home(value), argument(state))
        ->setAttr(exec::kFlopsAttr, builder.getI64IntegerAttr(0));
  func::ReturnOp::create(builder, end->getLoc());

  segment->setAttr(exec::kSegmentAttr, builder.getUnitAttr());
  segment->setAttr(exec::kTempAttr, builder.getI64IntegerAttr(tempBytes));
  segment->setAttr(exec::kFlopsAttr, builder.getI64IntegerAttr(*counter.count(function)));
  function.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult dsopt::blocksToSegments(ModuleOp module) {
  SmallVector<func::FuncOp> blocks;
  for (auto function : module.getOps<func::FuncOp>())
    if (((function->hasAttr(graph::kBlockAttr) && function->hasAttr(graph::kPhaseAttr)) ||
         function->hasAttr(graph::kMatrixUpdateAttr)) &&
        !function->hasAttr(exec::kSegmentAttr) && !function.isExternal())
      blocks.push_back(function);
  if (blocks.empty())
    return success();
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  Constants constants(module);
  graph::FlopCounter counter(module);
  SymbolTableCollection tables;
  std::optional<DeviceLimits> device = deviceOf(*target);
  for (func::FuncOp block : blocks) {
    FailureOr<func::FuncOp> segment =
        SegmentBuilder(block, constants, tables, counter, {target->getThreads(), isForDevice(module)}).run();
    if (failed(segment))
      return failure();
    if (device)
      noteTime(*segment, *device, tables);
  }
  return success();
}

namespace {
struct BlocksToSegments : dsopt::impl::BlocksToSegmentsBase<BlocksToSegments> {
  void runOnOperation() override {
    if (failed(blocksToSegments(getOperation())))
      signalPassFailure();
  }
};
} // namespace
