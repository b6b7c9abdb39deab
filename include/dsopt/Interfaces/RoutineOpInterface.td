//===- RoutineOpInterface.td - an operation that is a routine of the runtime ===//
#ifndef DSOPT_INTERFACES_ROUTINE
#define DSOPT_INTERFACES_ROUTINE
include "mlir/IR/OpBase.td"

def RoutineOpInterface : OpInterface<"RoutineOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What passes ask of an operation that becomes one call of the runtime: how its
    operands and results may lie, as what they are stored, what scratch it needs and
    which operation of a segment it becomes. Nothing has a default: a routine answers
    for each of its operands and results. Attached by external models
    (lib/Conversion/GraphToExec); it is no Lowerable.
  }];
  let methods = [
    InterfaceMethod<"Under which strides the routine reads an operand.",
      "::dsopt::Strides", "getOperandStrides", (ins "unsigned":$operand)>,
    InterfaceMethod<"Under which strides the routine writes a result.",
      "::dsopt::Strides", "getResultStrides", (ins "unsigned":$result)>,
    InterfaceMethod<"As what the routine reads an operand of floating point, where storage is narrow.",
      "::dsopt::Storage", "getOperandStorage", (ins "unsigned":$operand)>,
    InterfaceMethod<[{
      As what the routine writes a result of floating point, where storage is narrow: Any is narrow
      unless something needs it wide.
    }], "::dsopt::Storage", "getResultStorage", (ins "unsigned":$result)>,
    InterfaceMethod<"Whether a result may be computed straight in a gradient that it is added to.",
      "bool", "canAccumulate", (ins "unsigned":$result)>,
    InterfaceMethod<"Emits an error and fails where the routine has no code for types or attributes.",
      "::llvm::LogicalResult", "verifyRoutine">,
    InterfaceMethod<[{
      Bytes of scratch for all threads. `gradients` has for each result the element type of the
      gradient that it is computed in, or null.
    }], "int64_t", "getWorkspaceBytes",
      (ins "const ::dsopt::RoutineTarget &":$target, "::llvm::ArrayRef<::mlir::Type>":$gradients)>,
    InterfaceMethod<"Builds the operation of a segment.", "::mlir::Operation *", "buildCall",
      (ins "::mlir::OpBuilder &":$builder, "const ::dsopt::RoutineBuffers &":$buffers,
           "const ::dsopt::RoutineTarget &":$target)>,
  ];
}
#endif
