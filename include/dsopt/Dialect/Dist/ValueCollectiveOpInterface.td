//===- ValueCollectiveOpInterface.td - a collective on values ---------------===//
#ifndef DSOPT_DIALECT_DIST_VALUECOLLECTIVE
#define DSOPT_DIALECT_DIST_VALUECOLLECTIVE
include "mlir/IR/OpBase.td"

def ValueCollectiveOpInterface : OpInterface<"ValueCollectiveOpInterface"> {
  let cppNamespace = "::dsopt::dist";
  let description = [{
    What passes ask of a collective on values: an operation with one operand and one result of its
    element type, of all ranks along some axes. It ends a kernel and a part of its block; of one rank
    the result is the operand. Attached by external models where its actions are made
    (lib/Transforms/Order/ValueCollectives.cpp).
  }];
  let methods = [
    InterfaceMethod<"The axes that its ranks are along.", "::dsopt::dist::AxesAttr", "getAxes">,
    InterfaceMethod<[{
      Elements of a buffer for its operand, or its result, where that has so many and there are so
      many ranks. Those behind the value's own are anything. By default a multiple of 64 for each rank.
    }], "int64_t", "getBufferElements", (ins "bool":$is_result, "int64_t":$elements, "int64_t":$ranks), "", [{
      return ::llvm::alignTo(elements, ranks * ::dsopt::dist::kGranule);
    }]>,
    InterfaceMethod<"Whether all ranks have the same result.", "bool", "isAlike", (ins), "", "return true;">,
    InterfaceMethod<"Whether what ranks send is added, and not only moved.", "bool", "isSum", (ins), "",
                    "return true;">,
    InterfaceMethod<[{
      Writes its actions, from the value at `source` to its result at `target` (RefAttr). `type` is that
      of the operand's buffer, `name` the result's.
    }], "void", "writeActions",
    (ins "::dsopt::ProgramBuilder &":$out, "::mlir::Attribute":$source, "::mlir::Attribute":$target,
         "::mlir::MemRefType":$type, "::llvm::StringRef":$name)>
  ];
}
#endif
