//===- ExecEpilogueOps.td - products of a device's library with an epilogue -===//

#ifndef DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS
#define DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS

include "dsopt/Dialect/Exec/ExecBase.td"
include "dsopt/Interfaces/Epilogue.td"
include "mlir/IR/BuiltinAttributes.td"

def Exec_GemmEpilogueOp : Exec_Op<"gemm_epilogue"> {
  let summary = "graph.matmul_epilogue by a library of the device";
  let arguments = (ins Dsopt_Epilogue:$kind, AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$given, AnyMemRef:$result,
                       Optional<AnyMemRef>:$pre_activation, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let assemblyFormat = [{
    $kind $lhs `,` $rhs `,` $given `->` $result (`keeps` $pre_activation^ `:` type($pre_activation))? attr-dict
    `:` type($lhs) `,` type($rhs) `,` type($given) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS
