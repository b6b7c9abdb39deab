//===- OptimizerOpInterface.td - an operation that is an update rule --------===//
#ifndef DSOPT_INTERFACES_OPTIMIZER
#define DSOPT_INTERFACES_OPTIMIZER
include "mlir/IR/OpBase.td"

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What passes ask of an operation that makes new values of a parameter and of its
    states: by which name users choose it, what it keeps, which operand is what and
    how much of a parameter it has to see at once. Attached by external models
    (lib/Dialect/Graph/GraphOptimizers.cpp).
  }];
  let methods = [
    StaticInterfaceMethod<"The values of -optimizer that may mean this operation.",
      "::llvm::ArrayRef<::llvm::StringLiteral>", "getOptimizers">,
    StaticInterfaceMethod<[{
      The attributes with which the operation is what -optimizer=NAME means under the module's other
      options, or nothing where another operation is.
    }], "std::optional<::mlir::NamedAttrList>", "choose",
      (ins "::llvm::StringRef":$name, "::mlir::ModuleOp":$module)>,
    StaticInterfaceMethod<"What it keeps for a parameter of this element type, in the order of its operands.",
      "::llvm::SmallVector<::dsopt::OptimizerState>", "getStates", (ins "::mlir::Type":$element)>,
    StaticInterfaceMethod<"Builds the operation; `states` are in the order of getStates.",
      "::mlir::Operation *", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$parameter,
           "::mlir::Value":$gradient, "::mlir::ValueRange":$states, "::mlir::Value":$scalars,
           "const ::mlir::NamedAttrList &":$attributes)>,
    InterfaceMethod<"What an operand is.", "::dsopt::UpdateRole", "getRole", (ins "unsigned":$operand)>,
    InterfaceMethod<"The operand, a parameter or a state, that a result replaces.", "unsigned",
      "getReplaced", (ins "unsigned":$result)>,
    InterfaceMethod<"How much of a parameter the rule has to see at once.", "::dsopt::UpdateScope",
      "getScope">,
    StaticInterfaceMethod<[{
      Of a rule that takes matrices inside the model alone: the value of -optimizer that means the rule of
      all other parameters. Empty: the rule takes all.
    }], "::llvm::StringRef", "getCompanion", (ins), "", "return {};">,
    InterfaceMethod<[{
      Of a rule that sees more than elements: an operation on operands in the order of
      UpdateRole, elements by themselves, whose results are the direction of the step and the new states.
    }], "::mlir::Operation *", "buildDirection",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return nullptr;">,
    InterfaceMethod<[{
      The one that makes the new parameter of parameter, direction and scalars, the last two of a table
      in which DSOPT_TRUST follows from the norms. Of a rule that sees whole matrices, or parameters, the
      direction is what buildMatrix made of it.
    }], "::mlir::Operation *", "buildStep",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return nullptr;">,
    InterfaceMethod<[{
      Of a rule whose variance is frozen from -freeze-step on: an operation on operands in the order of
      UpdateRole whose result is the new parameter, by the momentum that ranks agree on, or what buildStep takes
      as the direction where norms are seen. Null of other rules.
    }], "::mlir::Operation *", "buildFrozen",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return nullptr;">,
    InterfaceMethod<"Whether it is such a rule.", "bool", "freezes", (ins), "", "return false;">,
    InterfaceMethod<[{
      Of a rule by which ranks move apart behind the freeze: operations on operands in the order of UpdateRole
      whose results are the common point, the momentum and this rank's way from that point: of a step that a
      rank makes by itself, and of one in which they meet, by what they agreed on of their ways.
    }], "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return nullptr;">,
    InterfaceMethod<"The other one.", "::mlir::Operation *", "buildJoin",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return nullptr;">,
    InterfaceMethod<"Whether it is such a rule.", "bool", "movesApart", (ins), "", "return false;">,
    InterfaceMethod<[{
      Of a rule that sees whole parameters: what it keeps of this one as a whole, each with a shape of its own.
    }], "::llvm::SmallVector<::dsopt::WholeState>", "getWholeStates", (ins), "", "return {};">,
    InterfaceMethod<[{
      Of a rule that sees whole matrices, or parameters: operations that make of the direction of a whole one
      the direction that buildStep takes. Where it has whole states, `operands` are the direction, the scalars
      and the states, and results the direction and the new states.
    }], "::llvm::SmallVector<::mlir::Value>", "buildMatrix",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", "return {};">,
    InterfaceMethod<"What kernels of the rule are called.", "::llvm::StringRef", "getRuleName">,
  ];
}
#endif
