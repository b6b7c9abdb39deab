//===- GraphState.cpp - verifiers of state, kernels and blocks ------------===//

#include "GraphSupport.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"
#include "dsopt/Dialect/Graph/Symbols.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

/// Bytes of a parameter that one entry of `chunks` covers.
static constexpr int64_t kChunkBytes = 1 << 20;

Type dsopt::graph::storedType(ParameterOp parameter) {
  auto type = cast<RankedTensorType>(parameter.getType());
  auto storage = parameter.getStorage();
  return storage ? RankedTensorType::get(type.getShape(), *storage) : type;
}

/// The attribute that each rule's operation has.
static constexpr llvm::StringLiteral kFunctions = "functions";

UpdateFunctions dsopt::graph::getFunctions(Operation *rule) {
  auto functions = rule->getAttrOfType<UpdateFunctionsAttr>(kFunctions);
  if (!functions)
    return {};
  return {functions.getKernel(), functions.getDirection(),      functions.getFrozen(),
          functions.getLocal(),  functions.getLocalDirection(), functions.getJoin(),
          functions.getMatrix()};
}

void dsopt::graph::setFunctions(Operation *rule, const UpdateFunctions &functions) {
  rule->setAttr(kFunctions, UpdateFunctionsAttr::get(
                                rule->getContext(), functions.kernel, functions.direction, functions.frozen,
                                functions.local, functions.localDirection, functions.join, functions.matrix));
}

std::optional<Phase> dsopt::graph::getPhase(Operation *op) {
  auto phase = op->getAttrOfType<PhaseAttr>(kPhaseAttr);
  return phase ? std::optional(phase.getValue()) : std::nullopt;
}

std::optional<Iteration> dsopt::graph::getIteration(Operation *kernel) {
  auto iterate = kernel->getAttrOfType<IterationAttr>(kIterateAttr);
  return iterate ? std::optional(iterate.getValue()) : std::nullopt;
}

std::string dsopt::graph::freeSymbol(const SymbolTable &symbols, const llvm::Twine &wanted) {
  std::string symbol = wanted.str();
  while (symbols.lookup(symbol))
    symbol += "~";
  return symbol;
}

void dsopt::graph::makeWay(SymbolTable &symbols, StringRef symbol) {
  Operation *op = symbols.lookup(symbol);
  if (!isa_and_nonnull<ParameterOp, StateOp>(op))
    return;
  if (auto parameter = dyn_cast<ParameterOp>(op); parameter && !parameter.getName())
    parameter.setNameAttr(parameter.getSymNameAttr());
  LogicalResult renamed = symbols.rename(op, freeSymbol(symbols, symbol));
  assert(succeeded(renamed) && "the symbol is free");
  (void)renamed;
}

llvm::DenseSet<StringAttr> dsopt::graph::findWholes(ModuleOp module) {
  llvm::DenseSet<StringAttr> wholes;
  for (auto parameter : module.getOps<ParameterOp>())
    if (FlatSymbolRefAttr whole = parameter.getPartOfAttr())
      wholes.insert(whole.getAttr());
  return wholes;
}

FlatSymbolRefAttr dsopt::graph::parameterRead(ReadOp read, SymbolTable &symbols) {
  auto state = symbols.lookup<StateOp>(read.getStateAttr().getAttr());
  return state ? state.getParameterAttr() : read.getStateAttr();
}

StringAttr dsopt::graph::seenWhole(ParameterOp parameter) {
  return parameter.getPartRuns() ? parameter.getPartOfAttr().getAttr() : parameter.getSymNameAttr();
}

LogicalResult ParameterOp::verify() {
  int64_t bytes = getBytes(), offset = getOffset();
  if (getSource() && (!isa<FloatType>(*getSource()) || !getElementTypeOrSelf(getType()).isF32()))
    return emitOpError("converts ") << *getSource() << " to " << getType() << ", expected floats to f32";
  int64_t expected = numElements(getType()) * elementBytes(getSourceType());
  if (bytes != expected)
    return emitOpError("has ") << bytes << " bytes, expected " << expected << " for " << getType();
  if (offset < 0)
    return emitOpError("is at offset ") << offset << ", expected at least 0";
  if (auto storage = getStorage(); storage && !isa<FloatType>(*storage))
    return emitOpError("is stored as ") << *storage << ", expected floats";
  if (getPartOf().has_value() != getPartBegin().has_value())
    return emitOpError(getPartOf() ? "is part of " : "begins in no parameter")
           << (getPartOf() ? ("@" + *getPartOf() + " without its first element there").str() : "")
           << ", expected both part_of and part_begin of a tile";
  if (auto runs = getPartRuns(); runs && (!getPartOf() || numElements(getType()) % runs->getLength()))
    return emitOpError("has the elements ")
           << *runs << ", expected whole runs of a parameter that it is part of";
  int64_t rank = cast<ShapedType>(getType()).getRank();
  if (auto dim = getAskedDim();
      dim.has_value() != getAskedBy().has_value() || (dim && ((int64_t)*dim < -1 || (int64_t)*dim >= rank)))
    return emitOpError("is asked to be cut along ")
           << (dim ? Twine((int64_t)*dim) : Twine("nothing")) << " by " << getAskedBy().value_or("nobody")
           << ", expected asked_by and one of its " << rank << " dimensions, or -1";
  if (getTransposed() && rank != 2)
    return emitOpError("of ") << rank << " dimensions is transposed, expected a matrix";
  for (auto factor : {learningRateFactor(), decayFactor()})
    if (!(factor >= 0))
      return emitOpError("has a factor ") << factor << ", expected at least 0";
  if (auto fileBytes = getFileBytes(); fileBytes && offset + bytes > (int64_t)*fileBytes)
    return emitOpError("ends at byte ") << offset + bytes << " of a file of " << *fileBytes << " bytes";
  if (auto chunks = getChunks(); chunks && chunks->size() != (uint64_t)llvm::divideCeil(bytes, kChunkBytes))
    return emitOpError("has ") << chunks->size() << " chunk hashes, expected "
                               << llvm::divideCeil(bytes, kChunkBytes) << " for " << bytes << " bytes";
  return success();
}

LogicalResult StateOp::verify() {
  if (getName().has_value() != (getRole() == Role::Optimizer))
    return emitOpError(getName() ? "has a name" : "has no name")
           << ", expected one of what an optimizer keeps";
  if (getBlock().has_value() != (getRole() == Role::Gradient))
    return emitOpError(getBlock() ? "is of a block" : "is of no block") << ", expected one of a gradient";
  return success();
}

/// Checks that `op` names a state (or a parameter, where `parameters` holds)
/// whose type is `type`.
static LogicalResult verifyState(Operation *op, FlatSymbolRefAttr name, Type type, bool parameters,
                                 SymbolTableCollection &symbols) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(op, name);
  Type expected;
  if (auto state = dyn_cast_or_null<StateOp>(symbol))
    expected = state.getType();
  else if (auto parameter = dyn_cast_or_null<ParameterOp>(symbol); parameter && parameters)
    expected = storedType(parameter);
  else
    return op->emitOpError("names ") << name << ", which is no "
                                     << (parameters ? "parameter or state" : "state") << " of this module";
  if (type != expected)
    return op->emitOpError("has type ") << type << ", expected " << expected << ", the type of " << name;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, getStateAttr(), getType(), true, symbols);
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // A value in fp32 is rounded as it is added to an accumulator in 16 bits.
  auto type = cast<RankedTensorType>(getValue().getType());
  auto state = dyn_cast_or_null<StateOp>(symbols.lookupNearestSymbolFrom(*this, getStateAttr()));
  if (state && type.getElementType().isF32() && isNarrowFloat(getElementTypeOrSelf(state.getType())))
    type = RankedTensorType::get(type.getShape(), getElementTypeOrSelf(state.getType()));
  return verifyState(*this, getStateAttr(), type, false, symbols);
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, getStateAttr(), getValue().getType(), true, symbols);
}

/// Compares one side of a call with the callee's types. A flat kernel's types
/// are nominal: it runs on ranges of tensors of any shape.
static LogicalResult verifyCallTypes(Operation *op, StringRef what, TypeRange got, TypeRange expected,
                                     bool flat) {
  if (got.size() != expected.size())
    return op->emitOpError("has ") << got.size() << " " << what << "s, expected " << expected.size();
  for (auto [i, a, b] : llvm::enumerate(got, expected))
    if (flat ? getElementTypeOrSelf(a) != getElementTypeOrSelf(b) : a != b)
      return op->emitOpError("has ") << what << " " << i << " of type " << a << ", expected " << b;
  return success();
}

LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("calls ") << getCalleeAttr() << ", which is no function of this module";
  std::optional<Iteration> iteration = getIteration(callee);
  if (!iteration)
    return emitOpError("calls ") << getCalleeAttr() << ", which is no kernel (it has no attribute "
                                 << kIterateAttr << ")";
  bool flat = iteration == Iteration::Flat;
  if (failed(verifyCallTypes(*this, "operand", getInputs().getTypes(), callee.getArgumentTypes(), flat)))
    return failure();
  return verifyCallTypes(*this, "result", getOutputs().getTypes(), callee.getResultTypes(), flat);
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("runs ") << getCalleeAttr() << ", which is no function of this module";
  // A segment takes buffers: its types say nothing about values any more.
  if (callee->hasAttr("exec.segment"))
    return success();
  if (failed(verifyCallTypes(*this, "operand", getInputs().getTypes(), callee.getArgumentTypes(), false)))
    return failure();
  return verifyCallTypes(*this, "result", getOutputs().getTypes(), callee.getResultTypes(), false);
}
