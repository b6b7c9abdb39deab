//===- StorageTypes.cpp - which values are stored in 16 bits --------------===//

#include "StorageTypes.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Layouts.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dsopt {
namespace {
/// What a value inside a kernel would be stored as, as far as its operands say. A splat, a row's number that
/// is broadcast and what is made of constants alone leave the choice to what they are combined with: of one
/// sequence a table of positions is as large as what it is combined with, of two it is not.
enum class Flow { Open, Narrow, Wide };

/// The value whose bytes hold `value`.
Value rootOf(Value value) { return graph::locate(value).root; }

bool isF32Tensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32();
}

Flow flowOf(Operation *op, const llvm::DenseMap<Value, Flow> &flows) {
  if (isa<graph::ConstantOp>(op))
    return Flow::Open;
  if (isa<graph::ReduceSumOp, graph::ReduceMeanOp, graph::ReduceMaxOp, graph::ReduceMinOp>(op))
    return Flow::Wide;
  int64_t elements = graph::numElements(op->getResult(0).getType());
  bool sameNarrow = false, sameWide = false, anyNarrow = false, any = false, allOpen = true;
  for (Value operand : op->getOperands()) {
    if (!isF32Tensor(operand.getType()))
      continue;
    any = true;
    Flow flow = flows.lookup(operand);
    bool same = graph::numElements(operand.getType()) == elements;
    allOpen &= flow == Flow::Open;
    anyNarrow |= flow == Flow::Narrow;
    sameNarrow |= same && flow == Flow::Narrow;
    sameWide |= same && flow == Flow::Wide;
  }
  if (sameWide)
    return Flow::Wide;
  if (sameNarrow || anyNarrow)
    return Flow::Narrow;
  return !any || allOpen || isa<graph::ExpandOp>(op) ? Flow::Open : Flow::Wide;
}
} // namespace

Storage neededStorage(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (graph::isReadView(op) || graph::isWriteView(op) || isa<graph::KernelOp>(op))
    return Storage::Any;
  // It travels as it is stored.
  if (isa<dist::ValueCollectiveOpInterface>(op))
    return Storage::Any;
  auto routine = dyn_cast<RoutineOpInterface>(op);
  return routine ? routine.getOperandStorage(operand.getOperandNumber()) : Storage::Wide;
}

llvm::DenseSet<StringAttr> narrowParameters(ModuleOp module) {
  llvm::DenseSet<StringAttr> narrow, wide;
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (!parameter.getFrozen())
      narrow.insert(parameter.getSymNameAttr());
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (!isF32Tensor(operand.get().getType()))
          continue;
        auto read = rootOf(operand.get()).getDefiningOp<graph::ReadOp>();
        Storage need = read ? neededStorage(operand) : Storage::Any;
        if (need == Storage::Narrow)
          narrow.insert(read.getStateAttr().getAttr());
        else if (need == Storage::Wide && isa<graph::AccumulateOp, func::ReturnOp>(op))
          wide.insert(read.getStateAttr().getAttr());
      }
    });
  for (StringAttr name : wide)
    narrow.erase(name);
  return narrow;
}

StorageTypes::StorageTypes(Block &block, SymbolTable &symbols, const llvm::DenseSet<StringAttr> &parameters)
    : symbols(symbols), parameters(parameters) {
  collectNeeds(block);
  for (Operation &op : block)
    decide(op);
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (isF32Tensor(result.getType()) && narrowRoots.contains(rootOf(result)))
        narrow.insert(result);
}

void StorageTypes::collectNeeds(Block &block) {
  for (Operation &op : block)
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isF32Tensor(operand.get().getType()))
        continue;
      Storage need = neededStorage(operand);
      if (need == Storage::Narrow)
        neededNarrow.insert(rootOf(operand.get()));
      // A routine that takes f32 gets a copy; a gradient, its pieces or the loss are never rounded.
      else if (auto kernel = dyn_cast<graph::KernelOp>(op);
               (need == Storage::Wide && isa<graph::AccumulateOp, func::ReturnOp>(op)) ||
               (kernel && addsPieces(kernel, /*exact=*/true)))
        neededWide.insert(rootOf(operand.get()));
    }
}

void StorageTypes::decide(Operation &op) {
  auto set = [&](Value value, bool isNarrow) {
    if (isNarrow && isF32Tensor(value.getType()) && !neededWide.contains(rootOf(value)))
      narrowRoots.insert(rootOf(value));
  };
  // Routines round what they return, whoever reads it.
  auto setRounded = [&](Value value) {
    if (isF32Tensor(value.getType()))
      narrowRoots.insert(rootOf(value));
  };
  llvm::TypeSwitch<Operation *>(&op)
      .Case<graph::ReadOp>(
          [&](graph::ReadOp read) { set(read, parameters.contains(read.getStateAttr().getAttr())); })
      .Case<RoutineOpInterface>([&](RoutineOpInterface routine) {
        for (OpResult result : op.getResults())
          switch (routine.getResultStorage(result.getResultNumber())) {
          case Storage::Any:
            set(result, true);
            break;
          case Storage::Narrow:
            setRounded(result);
            break;
          case Storage::Wide:
            break;
          }
      })
      .Case<dist::ValueCollectiveOpInterface>([&](dist::ValueCollectiveOpInterface op) {
        if (narrowRoots.contains(rootOf(op->getOperand(0))))
          setRounded(op->getResult(0));
      })
      .Case<graph::KernelOp>([&](graph::KernelOp kernel) {
        for (auto [output, isNarrow] : llvm::zip_equal(kernel.getOutputs(), throughKernel(kernel)))
          // Pieces are rounded at each node of their tree, whatever its sum is for.
          if (isNarrow && addsPieces(kernel, /*exact=*/false))
            setRounded(output);
          else
            set(output, isNarrow);
      });
}

bool StorageTypes::addsPieces(graph::KernelOp kernel, bool exact) {
  auto function = symbols.lookup<func::FuncOp>(kernel.getCalleeAttr().getAttr());
  auto add = dyn_cast<graph::TreeAddOp>(function.front().front());
  return add && add.getExact() == exact;
}

/// Whether a value that is not narrow is made of constants and frozen parameters alone.
bool StorageTypes::isOpen(Value value) {
  Value root = rootOf(value);
  return isa_and_nonnull<graph::ConstantOp, graph::ReadOp>(root.getDefiningOp()) || openRoots.contains(root);
}

SmallVector<bool> StorageTypes::throughKernel(graph::KernelOp kernel) {
  auto function = symbols.lookup<func::FuncOp>(kernel.getCalleeAttr().getAttr());
  // Sums over rows are what their loops store.
  if (graph::getIteration(function) != graph::Iteration::Rows)
    return SmallVector<bool>(kernel.getOutputs().size(), false);
  llvm::DenseMap<Value, Flow> flows;
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), kernel.getInputs()))
    flows[argument] = narrowRoots.contains(rootOf(input)) ? Flow::Narrow
                      : isOpen(input)                     ? Flow::Open
                                                          : Flow::Wide;
  for (Operation &op : function.front().without_terminator()) {
    Flow flow = flowOf(&op, flows);
    for (Value result : op.getResults())
      flows[result] = flow;
  }
  SmallVector<bool> results;
  for (auto [value, output] :
       llvm::zip_equal(function.front().getTerminator()->getOperands(), kernel.getOutputs())) {
    results.push_back(flows.lookup(value) == Flow::Narrow || neededNarrow.contains(rootOf(output)));
    if (flows.lookup(value) == Flow::Open)
      openRoots.insert(rootOf(output));
  }
  return results;
}
} // namespace dsopt
