//===- FloatSumOpInterface.td - an operation that adds floats ---------------===//
#ifndef DSOPT_INTERFACES_FLOATSUM
#define DSOPT_INTERFACES_FLOATSUM
include "mlir/IR/OpBase.td"

def FloatSumOpInterface : OpInterface<"FloatSumOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    Says that an operation adds (or multiplies) floats in an order that may differ between
    kernels: what is decided by its result is computed once. Attached by external models
    (lib/Dialect/Graph/GraphCosts.cpp).
  }];
}
#endif
