//===- RuntimeCallOpInterface.td - an operation of a segment as a call ------===//
#ifndef DSOPT_INTERFACES_RUNTIMECALL
#define DSOPT_INTERFACES_RUNTIMECALL
include "mlir/IR/OpBase.td"

def RuntimeCallOpInterface : OpInterface<"RuntimeCallOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What SegmentsToLLVM and DescribeCalls ask of an operation on memrefs that is one
    call of the runtime. Attached by external models (lib/Conversion/ExecToLLVM).
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the call. Emits an error and fails where the runtime cannot take the operands.
    }], "::llvm::LogicalResult", "buildCall", (ins "::dsopt::RuntimeCallBuilder &":$builder)>,
    InterfaceMethod<"What the call computes, for reports; its flops are the operation's.",
      "::dsopt::CallDescription", "describeCall">,
  ];
}
#endif
