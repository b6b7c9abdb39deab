//===- ExecEpilogueOps.td - products with an epilogue -----------*- tablegen -*-===//

#ifndef DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS
#define DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS

include "dsopt/Dialect/Exec/ExecBase.td"
include "dsopt/Dialect/Exec/ExecProducts.td"
include "dsopt/Interfaces/Epilogue.td"
include "mlir/IR/BuiltinAttributes.td"

def Exec_GemmEpilogueOp : Exec_Op<"gemm_epilogue", [AttrSizedOperandSegments]> {
  let summary = "graph.matmul_epilogue by a library of the device or, on a host, by a kernel";
  let description = [{
    A host has kernels that add a bias (compile-products), from a `packed` b as exec.gemm has it.
  }];
  let arguments = (ins Dsopt_Epilogue:$kind, AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$given, AnyMemRef:$result,
                       Optional<AnyMemRef>:$pre_activation, Optional<AnyMemRef>:$packed,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, OptionalAttr<Exec_ProductKernelAttr>:$kernel);
  let assemblyFormat = [{
    $kind $lhs `,` $rhs (`packed` $packed^ `:` type($packed))? `,` $given `->` $result (`keeps` $pre_activation^ `:` type($pre_activation))? (`by` $kernel^)?
    attr-dict `:` type($lhs) `,` type($rhs) `,` type($given) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_EXEC_EXECEPILOGUEOPS
