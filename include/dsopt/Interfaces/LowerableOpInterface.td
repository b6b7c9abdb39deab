//===- LowerableOpInterface.td - an operation as linalg ---------------------===//
#ifndef DSOPT_INTERFACES_LOWERABLE
#define DSOPT_INTERFACES_LOWERABLE
include "mlir/IR/OpBase.td"

def LowerableOpInterface : OpInterface<"LowerableOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What FormKernels and GraphToLinalg ask of an operation. Attached by external
    models (lib/Dialect/Graph/GraphLowerings.cpp).
  }];
  let methods = [
    InterfaceMethod<"How the operation reads and iterates (see FusionKind).",
      "::dsopt::FusionKind", "getFusionKind">,
    InterfaceMethod<[{
      Whether element i of the result needs of this operand only the element that
      broadcasting pairs with i. Only such an operand may be produced in the same
      kernel by a Pointwise or Indexed operation.
    }], "bool", "readsPointwise", (ins "unsigned":$operand), [{}], [{ return true; }]>,
    InterfaceMethod<[{
      Builds one linalg.generic on tensors that computes the only result.
      `operands` are the operation's operands (tensors).
    }], "::mlir::Value", "buildLinalg",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>,
  ];
}
#endif
