//===- ProductOpInterface.td - an operation that multiplies matrices --------===//
#ifndef DSOPT_INTERFACES_PRODUCT
#define DSOPT_INTERFACES_PRODUCT
include "mlir/IR/OpBase.td"

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    Says that an operation multiplies matrices, or does so inside: find-blocks looks
    for cuts between two that read a parameter. Attached by external models
    (lib/Dialect/Graph/GraphCosts.cpp).
  }];
}
#endif
