//===- DifferentiableOpInterface.td - builds the gradient of an operation ---===//
#ifndef DSOPT_INTERFACES_DIFFERENTIABLE
#define DSOPT_INTERFACES_DIFFERENTIABLE
include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What BuildBackward asks of an operation. Attached by external models
    (lib/Dialect/Graph/GraphDerivatives.cpp); an operation without it has no
    gradient.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether results depend on this operand as far as gradients go.
    }], "bool", "passesGradient", (ins "unsigned":$operand), [{}], [{ return true; }]>,
    InterfaceMethod<[{
      Builds, at the builder's insertion point, the gradients of those operands
      for which `needed` is true, from the gradients of the results
      (`resultGrads`, null where a result has none; never all null).
      `operandGrads` has one entry an operand, null on entry; an entry left null
      means a gradient of zero. Each gradient has exactly its operand's type:
      what broadcasting expanded is summed back. Emits an error and fails where
      the operation has no gradient.
    }], "::llvm::LogicalResult", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads,
         "::llvm::ArrayRef<bool>":$needed,
         "::llvm::MutableArrayRef<::mlir::Value>":$operandGrads)>];
}
#endif
