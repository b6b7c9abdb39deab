//===- CostedOpInterface.td - flops of an operation -------------------------===//
#ifndef DSOPT_INTERFACES_COSTED
#define DSOPT_INTERFACES_COSTED
include "mlir/IR/OpBase.td"

def CostedOpInterface : OpInterface<"CostedOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What the parallel and memory stages ask of an operation. Bytes follow from
    the types. Attached by external models (lib/Dialect/Graph/GraphCosts.cpp);
    an operation without it cannot be counted.
  }];
  let methods = [InterfaceMethod<"Floating-point operations of one execution.", "int64_t", "getFlops">];
}
#endif
