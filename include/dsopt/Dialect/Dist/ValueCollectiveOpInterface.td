//===- ValueCollectiveOpInterface.td - a collective on values ---------------===//
#ifndef DSOPT_DIALECT_DIST_VALUECOLLECTIVE
#define DSOPT_DIALECT_DIST_VALUECOLLECTIVE
include "mlir/IR/OpBase.td"

def ValueCollectiveOpInterface : OpInterface<"ValueCollectiveOpInterface"> {
  let cppNamespace = "::dsopt::dist";
  let description = [{
    What passes ask of a collective on values: an operation with one operand and one result of its
    type, of all ranks along some axes. It ends a kernel and a part of its block, and all ranks have
    the same result; of one rank the result is the operand. Attached by external models where its
    actions are made (lib/Transforms/Order/ValueCollectives.cpp).
  }];
  let methods = [
    InterfaceMethod<"The axes that its ranks are along.", "::dsopt::dist::AxesAttr", "getAxes">,
    InterfaceMethod<[{
      Writes its actions, from the value at `source` to its result at `target` (RefAttr): both have
      `type`, whose elements are a multiple of 64 for each rank; those beyond the value's own are
      anything. `name` is the result's.
    }], "void", "writeActions",
    (ins "::dsopt::ProgramBuilder &":$out, "::mlir::Attribute":$source, "::mlir::Attribute":$target,
         "::mlir::MemRefType":$type, "::llvm::StringRef":$name)>
  ];
}
#endif
