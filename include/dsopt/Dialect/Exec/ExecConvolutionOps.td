//===- ExecConvolutionOps.td - convolutions of a device's library -----------===//

#ifndef DSOPT_DIALECT_EXEC_EXECCONVOLUTIONOPS
#define DSOPT_DIALECT_EXEC_EXECCONVOLUTIONOPS

include "dsopt/Dialect/Exec/ExecBase.td"
include "dsopt/Interfaces/ConvolutionKind.td"
include "mlir/IR/BuiltinAttributes.td"

def Exec_ConvolutionOp : Exec_Op<"convolution"> {
  let summary = "graph.convolution by a library of the device; `into_gradient` obeys the run's accumulate flag";
  let description = [{`algorithm` is the library's number, as the table of Runtime/Convolution.h has it.}];
  let arguments = (ins Dsopt_ConvolutionKind:$kind, AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$result, AnyMemRef:$workspace,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       I64Attr:$groups, I64Attr:$algorithm, UnitAttr:$channels_last, UnitAttr:$into_gradient);
  let assemblyFormat = [{
    $kind $lhs `,` $rhs `->` $result `workspace` $workspace attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result) `workspace` type($workspace)
  }];
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_EXEC_EXECCONVOLUTIONOPS
