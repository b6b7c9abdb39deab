//===- GraphOptimizers.cpp - what update rules keep and need --------------===//

#include "GraphAdafactor.h"
#include "GraphNewtonSchulz.h"
#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/OneBitLamb.h"
#include "dsopt/Dialect/Graph/Optimizers.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

static constexpr llvm::StringLiteral kSgd[] = {"sgd"}, kAdam[] = {"adam", "adamw"}, kLion[] = {"lion"},
                                     kAdagrad[] = {"adagrad"}, kLamb[] = {"lamb"},
                                     kOneBitAdam[] = {"onebit-adam"}, kZeroOneAdam[] = {"zero-one-adam"},
                                     kOneBitLamb[] = {"onebit-lamb"}, kMuon[] = {"muon"},
                                     kAdafactor[] = {"adafactor"};

/// States of f32, wider where the parameter is.
static SmallVector<OptimizerState> wideStates(ArrayRef<StringRef> roles, Type element) {
  Type kept = element.getIntOrFloatBitWidth() < 32 ? Float32Type::get(element.getContext()) : element;
  return llvm::map_to_vector(roles, [&](StringRef role) { return OptimizerState{role, kept}; });
}

namespace {
/// A rule that works on each element by itself, whose operands are parameter, gradient, states and scalars
/// and whose results are the new parameter and the new states.
template <typename Model, typename Op>
struct ElementwiseRule : OptimizerOpInterface::ExternalModel<Model, Op> {
  static Operation *buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient,
                                ValueRange states, Value scalars, const NamedAttrList &attributes) {
    OperationState state(loc, Op::getOperationName());
    state.addOperands({parameter, gradient});
    state.addOperands(states);
    state.addOperands(scalars);
    state.addTypes(parameter.getType());
    state.addTypes(states.getTypes());
    state.addAttributes(attributes);
    return builder.create(state);
  }
  UpdateRole getRole(Operation *op, unsigned operand) const {
    if (operand + 1 == op->getNumOperands())
      return UpdateRole::Scalars;
    return operand == 0 ? UpdateRole::Parameter : operand == 1 ? UpdateRole::Gradient : UpdateRole::State;
  }
  unsigned getReplaced(Operation *, unsigned result) const { return result == 0 ? 0 : result + 1; }
  UpdateScope getScope(Operation *) const { return UpdateScope::Elements; }
  StringRef getRuleName(Operation *op) const { return op->getName().stripDialect(); }
};

struct SgdRule : ElementwiseRule<SgdRule, SgdOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kSgd; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp module) {
    if (name != "sgd" || getOption(module, "momentum", 0) != 0)
      return std::nullopt;
    return NamedAttrList();
  }
  static SmallVector<OptimizerState> getStates(Type) { return {}; }
};

struct MomentumRule : ElementwiseRule<MomentumRule, MomentumOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kSgd; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp module) {
    if (name != "sgd" || getOption(module, "momentum", 0) == 0)
      return std::nullopt;
    return NamedAttrList();
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"momentum"}, element); }
};

struct AdamRule : ElementwiseRule<AdamRule, AdamOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kAdam; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp module) {
    if (!llvm::is_contained(kAdam, name))
      return std::nullopt;
    NamedAttrList attributes;
    if (name == "adamw")
      attributes.set("decoupled", UnitAttr::get(module.getContext()));
    return attributes;
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"m", "v"}, element); }
  StringRef getRuleName(Operation *op) const { return cast<AdamOp>(op).getDecoupled() ? "adamw" : "adam"; }
};

/// What -optimizer=NAME means whatever the other options are.
static std::optional<NamedAttrList> chooseByName(StringRef name, ArrayRef<llvm::StringLiteral> names) {
  return name == names[0] ? std::optional(NamedAttrList()) : std::nullopt;
}

struct LionRule : ElementwiseRule<LionRule, LionOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kLion; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) { return chooseByName(name, kLion); }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"m"}, element); }
};

struct AdagradRule : ElementwiseRule<AdagradRule, AdagradOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kAdagrad; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return chooseByName(name, kAdagrad);
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"sum"}, element); }
};

struct LambRule : ElementwiseRule<LambRule, LambOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kLamb; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) { return chooseByName(name, kLamb); }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"m", "v"}, element); }
  UpdateScope getScope(Operation *) const { return UpdateScope::Parameters; }
  Operation *buildDirection(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Type type = operands[0].getType();
    return LambDirectionOp::create(builder, op->getLoc(), TypeRange{type, type, type}, operands);
  }
  Operation *buildStep(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return LambStepOp::create(builder, op->getLoc(), operands[0].getType(), operands);
  }
};

/// Users choose the rule that it is a form of.
struct BranchUpdateRule : ElementwiseRule<BranchUpdateRule, BranchUpdateOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return {}; }
  static std::optional<NamedAttrList> choose(StringRef, ModuleOp) { return std::nullopt; }
  static SmallVector<OptimizerState> getStates(Type) { return {}; }
  StringRef getRuleName(Operation *op) const {
    auto update = cast<BranchUpdateOp>(op);
    return llvm::StringSwitch<StringRef>(update.getRule())
        .Case("sgd", "sgd.branch")
        .Case("momentum", "momentum.branch")
        .Case("lion", "lion.branch")
        .Case("adagrad", "adagrad.branch")
        .Default(update.getDecoupled() ? "adamw.branch" : "adam.branch");
  }
};

struct OneBitAdamRule : ElementwiseRule<OneBitAdamRule, OneBitAdamOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kOneBitAdam; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return chooseByName(name, kOneBitAdam);
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"m", "v"}, element); }
  bool freezes(Operation *) const { return true; }
  Operation *buildFrozen(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return OneBitAdamStepOp::create(builder, op->getLoc(), operands[0].getType(),
                                    {operands[0], operands[2], operands[3], operands[4]});
  }
};

/// `u` is this rank's way from the point that all have in common, which is the master.
struct ZeroOneAdamRule : ElementwiseRule<ZeroOneAdamRule, ZeroOneAdamOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kZeroOneAdam; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return chooseByName(name, kZeroOneAdam);
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"m", "v", "u"}, element); }
  bool freezes(Operation *) const { return true; }
  Operation *buildFrozen(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return OneBitAdamStepOp::create(builder, op->getLoc(), operands[0].getType(),
                                    {operands[0], operands[2], operands[3], operands[5]});
  }
  bool movesApart(Operation *) const { return true; }
  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Type type = operands[0].getType();
    return ZeroOneAdamLocalOp::create(
        builder, op->getLoc(), TypeRange{type, type, type},
        {operands[0], operands[1], operands[2], operands[4], operands[3], operands[5]});
  }
  Operation *buildJoin(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Type type = operands[0].getType();
    return ZeroOneAdamJoinOp::create(builder, op->getLoc(), TypeRange{type, type, type},
                                     {operands[0], operands[2], operands[4], operands[3], operands[5]});
  }
};

struct OneBitLambRule : ElementwiseRule<OneBitLambRule, OneBitLambOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kOneBitLamb; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return chooseByName(name, kOneBitLamb);
  }
  static SmallVector<OptimizerState> getStates(Type element) {
    return wideStates({"m", "v", "v_fresh"}, element);
  }
  UpdateScope getScope(Operation *) const { return UpdateScope::Parameters; }
  bool freezes(Operation *) const { return true; }
  Operation *buildDirection(Operation *op, OpBuilder &builder, ValueRange operands) const {
    SmallVector<Type> types(4, operands[0].getType());
    return OneBitLambDirectionOp::create(builder, op->getLoc(), types, operands);
  }
  Operation *buildFrozen(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return OneBitLambFrozenOp::create(builder, op->getLoc(), operands[0].getType(),
                                      {operands[0], operands[1], operands[2], operands[3], operands[5]});
  }
  Operation *buildStep(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return LambStepOp::create(builder, op->getLoc(), operands[0].getType(), operands);
  }
};

struct MuonRule : ElementwiseRule<MuonRule, MuonOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kMuon; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp module) {
    std::optional<NamedAttrList> attributes = chooseByName(name, kMuon);
    if (attributes && options::muon_adjust(module) == "match-rms-adamw")
      attributes->set("match_rms", UnitAttr::get(module.getContext()));
    return attributes;
  }
  static SmallVector<OptimizerState> getStates(Type element) { return wideStates({"momentum"}, element); }
  static StringRef getCompanion() { return "adamw"; }
  UpdateScope getScope(Operation *) const { return UpdateScope::Matrices; }
  Operation *buildDirection(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Type type = operands[0].getType();
    return MuonDirectionOp::create(builder, op->getLoc(), TypeRange{type, type}, operands);
  }
  SmallVector<Value> buildMatrix(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto muon = cast<MuonOp>(op);
    return {
        buildNewtonSchulz(builder, op->getLoc(), operands[0], muon.getMatchRms(), muon.getRowsAreInputs())};
  }
  Operation *buildStep(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return MuonStepOp::create(builder, op->getLoc(), operands[0].getType(), operands);
  }
};

struct AdafactorRule : ElementwiseRule<AdafactorRule, AdafactorOp> {
  static ArrayRef<llvm::StringLiteral> getOptimizers() { return kAdafactor; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return chooseByName(name, kAdafactor);
  }
  static SmallVector<OptimizerState> getStates(Type) { return {}; }
  UpdateScope getScope(Operation *) const { return UpdateScope::Tensors; }
  Operation *buildDirection(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return AdafactorDirectionOp::create(builder, op->getLoc(), operands[1].getType(), operands);
  }
  SmallVector<WholeState> getWholeStates(Operation *op) const {
    return adafactorStates(cast<RankedTensorType>(op->getOperand(0).getType()));
  }
  SmallVector<Value> buildMatrix(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return buildAdafactor(builder, op->getLoc(), operands);
  }
  Operation *buildStep(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return AdafactorStepOp::create(builder, op->getLoc(), operands[0].getType(), operands);
  }
};
} // namespace

void dsopt::graph::registerOptimizers(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    SgdOp::attachInterface<SgdRule>(*context);
    MomentumOp::attachInterface<MomentumRule>(*context);
    AdamOp::attachInterface<AdamRule>(*context);
    BranchUpdateOp::attachInterface<BranchUpdateRule>(*context);
    LionOp::attachInterface<LionRule>(*context);
    AdagradOp::attachInterface<AdagradRule>(*context);
    LambOp::attachInterface<LambRule>(*context);
    OneBitAdamOp::attachInterface<OneBitAdamRule>(*context);
    ZeroOneAdamOp::attachInterface<ZeroOneAdamRule>(*context);
    OneBitLambOp::attachInterface<OneBitLambRule>(*context);
    MuonOp::attachInterface<MuonRule>(*context);
    AdafactorOp::attachInterface<AdafactorRule>(*context);
  });
}
