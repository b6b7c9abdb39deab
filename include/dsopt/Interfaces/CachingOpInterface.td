//===- CachingOpInterface.td - operations that keep rows between runs -------===//
#ifndef DSOPT_INTERFACES_CACHING
#define DSOPT_INTERFACES_CACHING
include "mlir/IR/OpBase.td"

def CachingOpInterface : OpInterface<"CachingOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    A mixer of positions in a program that is given few of them at a time: it keeps what later positions need
    of these, in caches that outlive the run.
  }];
  let methods = [
    InterfaceMethod<[{
      The caches that it reads and changes, each with the operand whose rows it keeps, in their element type.
    }], "::llvm::SmallVector<::dsopt::KeptRows>", "getCaches">
  ];
}
#endif
