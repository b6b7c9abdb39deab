//===- GraphEpilogueOps.td - products with an epilogue ----------*- tablegen -*-===//
//
// A file of its own, with a header of its own: few passes know of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHEPILOGUEOPS
#define DSOPT_DIALECT_GRAPH_GRAPHEPILOGUEOPS

include "dsopt/Dialect/Graph/GraphBase.td"
include "dsopt/Interfaces/Epilogue.td"

def Graph_MatMulEpilogueOp : Graph_Op<"matmul_epilogue", [Pure]> {
  let summary = "a product of two matrices with what follows it element by element";
  let description = [{
    Of the sums of a product, in fp32 and before they are rounded: `bias` adds `given`, a value for each
    column, `bias_gelu` does so and goes on with GELU (the tanh approximation), and `gelu_grad` multiplies by GELU's slope at `given`, a matrix. `pre_activation` is what GELU took, where
    something reads it.

    ```mlir
    %y, %s = graph.matmul_epilogue bias_gelu %x, %w, %b : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>)
        -> (tensor<8x32xf32>, tensor<8x32xf32>)
    %d = graph.matmul_epilogue gelu_grad %g, %v, %s {transpose_b}
        : (tensor<8x64xf32>, tensor<32x64xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins Dsopt_Epilogue:$kind, Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, Graph_FloatTensor:$given,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Graph_FloatTensor:$result, Optional<Graph_FloatTensor>:$pre_activation);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHEPILOGUEOPS
