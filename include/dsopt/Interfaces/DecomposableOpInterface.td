//===- DecomposableOpInterface.td - a composite in terms of primitives ------===//
#ifndef DSOPT_INTERFACES_DECOMPOSABLE
#define DSOPT_INTERFACES_DECOMPOSABLE
include "mlir/IR/OpBase.td"

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What DecomposeComposites asks of an operation. Attached by external models
    (lib/Dialect/Graph/GraphDecompositions.cpp).
  }];
  let methods = [InterfaceMethod<[{
      Builds the operation's results out of primitive operations, one value a
      result, of the result's type.
    }], "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}
#endif
