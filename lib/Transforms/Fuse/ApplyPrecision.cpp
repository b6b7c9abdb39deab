//===- ApplyPrecision.cpp - 16 bits between kernels, masters for parameters ===//
//
// bf16 or f16 is how values are stored, not how they are computed: kernels extend what
// they load and round what they store (DESIGN 2.1 rule 1), products add in fp32.
// So the pass runs when kernels are formed and changes the types between them.
//
//===----------------------------------------------------------------------===//

#include "StorageTypes.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_APPLYPRECISION
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
RankedTensorType withElement(Type type, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(type).getShape(), element);
}

struct ApplyPrecision : impl::ApplyPrecisionBase<ApplyPrecision> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "precision", StringRef(precision));
    StringRef chosen = options::precision(module);
    bool isNarrow = chosen != "fp32";
    // Where ranks move apart, a master is what they have in common.
    WalkResult found = module.walk([](Operation *op) {
      return graph::getFunctions(op).local ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!isNarrow && !found.wasInterrupted())
      return;
    if (isNarrow && chosen != "bf16" && chosen != "fp16") {
      module.emitError("precision is '") << chosen << "', expected fp32, bf16 or fp16";
      return signalPassFailure();
    }
    symbols.emplace(module);
    builder.emplace(&getContext());
    narrowType = !isNarrow          ? Type(builder->getF32Type())
                 : chosen == "bf16" ? Type(builder->getBF16Type())
                                    : Type(builder->getF16Type());
    f32 = builder->getF32Type();
    // Everything that deals with gradients takes their type from here.
    if (isNarrow && options::gradient_type(module) == "param")
      for (auto state : module.getOps<graph::StateOp>())
        if (state.getRole() == graph::Role::Gradient)
          state.setType(withElement(state.getType(), narrowType));
    if (isNarrow)
      narrowed = narrowParameters(module);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      // What is made of fp32 gradients is computed in fp32.
      if (function.isExternal() || function->hasAttr(graph::kIterateAttr) ||
          function->hasAttr(graph::kMatrixUpdateAttr))
        continue;
      bool updates = llvm::any_of(function.front(), [](Operation &op) { return isa<graph::WriteOp>(op); });
      if (updates)
        addMasters(function.front());
      else if (isNarrow)
        narrow(function.front());
    }
    // What another function or call still uses stays.
    module.walk([&](graph::KernelOp kernel) {
      replaced.remove(symbols->lookup<func::FuncOp>(kernel.getCalleeAttr().getAttr()));
    });
    for (func::FuncOp kernel : replaced)
      symbols->erase(kernel);
  }

private:
  void narrow(Block &block);
  void narrowKernel(graph::KernelOp kernel, const StorageTypes &types);
  Value converted(Value value, Type element, Operation *user);
  void extendArgument(BlockArgument argument, Type stored);
  void roundResult(OpOperand &result, Type stored);
  void addMasters(Block &block);
  void readGradients(Block &block);
  void addMasterToKernel(func::FuncOp kernel, Type gradient);
  func::FuncOp add(func::FuncOp function, const Twine &name);

  std::optional<SymbolTable> symbols;
  std::optional<OpBuilder> builder;
  /// Parameters that are stored in the narrow type.
  llvm::DenseSet<StringAttr> narrowed;
  Type narrowType, f32;
  /// Kernels by the original's name and the types of this one, and conversions by their types.
  llvm::StringMap<func::FuncOp> kernels;
  llvm::SetVector<func::FuncOp> replaced;
  /// Copies of values in the other type, for the block and phase of a user.
  llvm::DenseMap<std::tuple<Value, Attribute, Attribute>, Value> copies;
};

func::FuncOp ApplyPrecision::add(func::FuncOp function, const Twine &name) {
  std::string unique = name.str();
  for (int64_t number = 1; symbols->lookup(unique); ++number)
    unique = (name + "." + Twine(number)).str();
  function.setName(unique);
  symbols->insert(function);
  return function;
}

/// The value in another element type, made by a kernel of its own in the user's block and phase.
Value ApplyPrecision::converted(Value value, Type element, Operation *user) {
  Attribute block = user->getAttr(graph::kBlockAttr), phase = user->getAttr(graph::kPhaseAttr);
  // Kernels take contiguous values: what a view shows is converted, and shown again.
  if (Operation *view = value.getDefiningOp(); graph::isReadView(view)) {
    Value source = converted(view->getOperand(0), element, user);
    builder->setInsertionPoint(user);
    Operation *shown = builder->clone(*view);
    shown->setOperand(0, source);
    shown->getResult(0).setType(withElement(value.getType(), element));
    for (auto [name, attr] : {std::pair(graph::kBlockAttr, block), std::pair(graph::kPhaseAttr, phase)})
      if (attr)
        shown->setAttr(name, attr);
    return shown->getResult(0);
  }
  Value &copy = copies[{value, block, phase}];
  if (copy)
    return copy;
  auto from = cast<RankedTensorType>(value.getType());
  Type to = withElement(from, element);
  std::string key;
  llvm::raw_string_ostream(key) << from << to;
  func::FuncOp &function = kernels[key];
  Location loc = user->getLoc();
  if (!function) {
    builder->clearInsertionPoint();
    function = func::FuncOp::create(*builder, loc, "convert", builder->getFunctionType({from}, {to}));
    function.setPrivate();
    function->setAttr(graph::kIterateAttr, graph::IterationAttr::get(&getContext(), graph::Iteration::Rows));
    ArrayRef<int64_t> shape = from.getShape();
    function->setAttr(graph::kRangeAttr,
                      builder->getDenseI64ArrayAttr(shape.size() > 1 ? shape.drop_back() : shape));
    Block *body = function.addEntryBlock();
    builder->setInsertionPointToStart(body);
    Value result = graph::CastOp::create(*builder, loc, to, body->getArgument(0));
    func::ReturnOp::create(*builder, loc, result);
    add(function, "convert");
  }
  builder->setInsertionPoint(user);
  auto kernel = graph::KernelOp::create(*builder, loc, TypeRange{to}, FlatSymbolRefAttr::get(function),
                                        ValueRange{value});
  for (auto [name, attr] : {std::pair(graph::kBlockAttr, block), std::pair(graph::kPhaseAttr, phase)})
    if (attr)
      kernel->setAttr(name, attr);
  return copy = kernel.getOutputs()[0];
}

/// Makes a kernel's argument one of a narrower type, which the kernel extends.
void ApplyPrecision::extendArgument(BlockArgument argument, Type stored) {
  Type computed = argument.getType();
  if (stored == computed)
    return;
  builder->setInsertionPointToStart(argument.getOwner());
  argument.setType(stored);
  auto extended = graph::CastOp::create(*builder, argument.getLoc(), computed, argument);
  argument.replaceAllUsesExcept(extended, extended);
}

/// Rounds a result of a kernel, for its other readers in the kernel too: what is compared or computed again
/// elsewhere is the value that is stored.
void ApplyPrecision::roundResult(OpOperand &result, Type stored) {
  Value computed = result.get();
  builder->setInsertionPointAfterValue(computed);
  auto rounded = graph::CastOp::create(*builder, computed.getLoc(), stored, computed);
  auto extended = graph::CastOp::create(*builder, computed.getLoc(), computed.getType(), rounded);
  result.set(rounded);
  computed.replaceAllUsesExcept(extended, rounded);
  if (extended.use_empty())
    extended.erase();
}

/// Gives a kernel call results of the chosen types and a callee that takes and gives them.
void ApplyPrecision::narrowKernel(graph::KernelOp kernel, const StorageTypes &types) {
  auto original = symbols->lookup<func::FuncOp>(kernel.getCalleeAttr().getAttr());
  bool changes = false;
  for (Value output : kernel.getOutputs())
    if (types.isNarrow(output)) {
      output.setType(withElement(output.getType(), narrowType));
      changes = true;
    }
  changes |= TypeRange(kernel.getInputs()) != TypeRange(original.getArgumentTypes());
  if (!changes)
    return;
  auto type = builder->getFunctionType(TypeRange(kernel.getInputs()), TypeRange(kernel.getOutputs()));
  std::string key = original.getName().str();
  llvm::raw_string_ostream(key) << type;
  func::FuncOp &function = kernels[key];
  if (!function) {
    function = original.clone();
    function.setType(type);
    Block &body = function.front();
    for (auto [argument, wanted] : llvm::zip_equal(body.getArguments(), type.getInputs()))
      extendArgument(argument, wanted);
    for (auto [operand, wanted] : llvm::zip_equal(body.getTerminator()->getOpOperands(), type.getResults()))
      if (operand.get().getType() != wanted)
        roundResult(operand, wanted);
    add(function, original.getName() + (narrowType.isBF16() ? ".bf16" : ".f16"));
  }
  kernel.setCalleeAttr(FlatSymbolRefAttr::get(function));
  replaced.insert(original);
}

void ApplyPrecision::narrow(Block &block) {
  StorageTypes types(block, *symbols, narrowed);
  SmallVector<graph::KernelOp> calls;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (OpOperand &operand : op.getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      Storage need = neededStorage(operand);
      if (!type || need == Storage::Any)
        continue;
      if (need == Storage::Narrow && type.getElementType() == f32)
        operand.set(converted(operand.get(), narrowType, &op));
      else if (need == Storage::Wide && type.getElementType() == narrowType)
        operand.set(converted(operand.get(), f32, &op));
    }
    if (auto kernel = dyn_cast<graph::KernelOp>(op)) {
      narrowKernel(kernel, types);
      continue;
    }
    for (Value result : op.getResults())
      if (types.isNarrow(result))
        result.setType(withElement(result.getType(), narrowType));
    if (auto read = dyn_cast<graph::ReadOp>(op); read && types.isNarrow(read))
      symbols->lookup<graph::ParameterOp>(read.getStateAttr().getAttr()).setStorage(narrowType);
  }
}

/// The operand of an update that is the gradient.
OpOperand &gradientOf(OptimizerOpInterface rule) {
  return *llvm::find_if(rule->getOpOperands(), [&](OpOperand &operand) {
    return rule.getRole(operand.getOperandNumber()) == UpdateRole::Gradient;
  });
}

/// Gradients are read, and those of one parameter added, as what they are stored as.
void ApplyPrecision::readGradients(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto read = dyn_cast<graph::ReadOp>(op)) {
      auto state = symbols->lookup<graph::StateOp>(read.getStateAttr().getAttr());
      if (state && state.getRole() == graph::Role::Gradient)
        read.getResult().setType(cast<RankedTensorType>(state.getType()));
    } else if (auto sum = dyn_cast<graph::AddOp>(op)) {
      sum.getResult().setType(cast<RankedTensorType>(sum.getLhs().getType()));
    } else if (auto rule = dyn_cast<OptimizerOpInterface>(op)) {
      OpOperand &operand = gradientOf(rule);
      Value gradient = operand.get();
      builder->setInsertionPoint(&op);
      if (narrowType != f32 && getElementTypeOrSelf(gradient.getType()) == narrowType)
        operand.set(
            graph::CastOp::create(*builder, op.getLoc(), withElement(gradient.getType(), f32), gradient));
    }
  }
}

/// The update reads and writes the master; the parameter is the master rounded.
void ApplyPrecision::addMasters(Block &block) {
  readGradients(block);
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> masters; ///< of parameters
  llvm::MapVector<func::FuncOp, Type> updates; ///< with the element type of the gradients they read
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto rule = dyn_cast<OptimizerOpInterface>(op)) {
      Value gradient = gradientOf(rule).get();
      auto extended = gradient.getDefiningOp<graph::CastOp>();
      for (SymbolRefAttr *kernel : graph::getFunctions(rule).kernels())
        if (*kernel)
          updates[symbols->lookup<func::FuncOp>(kernel->getLeafReference())] =
              getElementTypeOrSelf(extended ? extended.getOperand().getType() : gradient.getType());
    }
    auto read = dyn_cast<graph::ReadOp>(op);
    auto write = dyn_cast<graph::WriteOp>(op);
    if (!read && !write)
      continue;
    auto name = read ? read.getStateAttr() : write.getStateAttr();
    auto parameter = symbols->lookup<graph::ParameterOp>(name.getAttr());
    if (!parameter)
      continue;
    FlatSymbolRefAttr &master = masters[parameter];
    if (!master)
      master =
          FlatSymbolRefAttr::get(&getContext(), graph::freeSymbol(*symbols, name.getValue() + ".master"));
    if (read) {
      // Before the optimizer's own state: the update takes them in this order.
      Operation *before = parameter->getNextNode();
      for (auto state : getOperation().getOps<graph::StateOp>())
        if (state.getRole() != graph::Role::Gradient &&
            state.getParameterAttr().getAttr() == name.getAttr()) {
          before = state;
          break;
        }
      builder->setInsertionPoint(before);
      auto state =
          graph::StateOp::create(*builder, parameter.getLoc(), master.getAttr(), parameter.getType(),
                                 graph::Role::Master, StringAttr(), parameter.getSymName(), IntegerAttr());
      symbols->insert(state, Block::iterator(before));
      if (narrowType != f32)
        parameter.setStorage(narrowType);
      read.setStateAttr(master);
    } else {
      builder->setInsertionPoint(write);
      graph::WriteOp::create(*builder, write.getLoc(), master, write.getValue());
      if (narrowType != f32)
        write.getValueMutable().assign(graph::CastOp::create(
            *builder, write.getLoc(), withElement(write.getValue().getType(), narrowType), write.getValue()));
    }
  }
  for (auto [kernel, gradient] : updates)
    addMasterToKernel(kernel, gradient);
}

/// From (parameter, gradient, states, scalars) to (parameter, gradient, master, states, scalars); the
/// rounded parameter becomes the first result.
void ApplyPrecision::addMasterToKernel(func::FuncOp kernel, Type gradient) {
  Block &body = kernel.front();
  Location loc = kernel.getLoc();
  BlockArgument parameter = body.getArgument(kUpdatedParameter);
  Type wide = parameter.getType(), stored = withElement(wide, narrowType);
  Value master = body.insertArgument(kFirstUpdateState, wide, loc);
  parameter.replaceAllUsesWith(master);
  parameter.setType(cast<RankedTensorType>(stored));
  Operation *terminator = body.getTerminator();
  builder->setInsertionPoint(terminator);
  ArrayRef<int64_t> replaced = kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kInPlaceAttr).asArrayRef();
  // What was the parameter is the master now, and states stand one further.
  SmallVector<int64_t> inPlace;
  if (auto updated = llvm::find(replaced, kUpdatedParameter); updated != replaced.end()) {
    Value whole = terminator->getOperand(updated - replaced.begin());
    // How far this rank is from what all have in common.
    if (auto offset = dyn_cast_or_null<IntegerAttr>(kernel->removeAttr(graph::kOffsetAttr)))
      whole = graph::AddOp::create(*builder, loc, wide, whole, terminator->getOperand(offset.getInt()));
    if (stored != wide)
      whole = graph::CastOp::create(*builder, loc, stored, whole);
    terminator->insertOperands(0, whole);
    inPlace.push_back(kUpdatedParameter);
  }
  for (int64_t argument : replaced)
    inPlace.push_back(argument == kUpdatedParameter  ? kFirstUpdateState
                      : argument < kFirstUpdateState ? argument
                                                     : argument + 1);
  extendArgument(body.getArgument(kUpdateGradient), withElement(wide, gradient));
  kernel.setType(builder->getFunctionType(body.getArgumentTypes(), terminator->getOperandTypes()));
  kernel->setAttr(graph::kInPlaceAttr, builder->getDenseI64ArrayAttr(inPlace));
}
} // namespace
} // namespace dsopt
