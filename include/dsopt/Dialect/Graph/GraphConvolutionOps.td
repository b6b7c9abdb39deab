//===- GraphConvolutionOps.td - convolutions of a device's library ----------===//
//
// A file of its own, with a header of its own: few passes know of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHCONVOLUTIONOPS
#define DSOPT_DIALECT_GRAPH_GRAPHCONVOLUTIONOPS

include "dsopt/Dialect/Graph/GraphBase.td"
include "dsopt/Interfaces/ConvolutionKind.td"

def Graph_ConvolutionOp : Graph_Op<"convolution", [Pure]> {
  let summary = "a convolution or one of its two gradients";
  let description = [{
    Of y = convolution(x, w) with x `[N, C, size...]`, w `[O, C / groups, kernel...]` and y `[N, O,
    count...]` (with `channels_last` all three have the second dimension last): `forward` is y of x and w,
    `data` the gradient of x from y's and w, `weight` that of w from x and y's. Element `o` of y reads the
    elements `o * stride + k * dilation - pad` of x, zeros outside; there are as many pads behind as before.
    One to three dimensions are moved over.

    ```mlir
    %y = graph.convolution forward %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64}
        : (tensor<4x8x9x9xf32>, tensor<16x8x3x3xf32>) -> tensor<4x16x5x5xf32>
    ```
  }];
  let arguments = (ins Dsopt_ConvolutionKind:$kind, Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       I64Attr:$groups, UnitAttr:$channels_last);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHCONVOLUTIONOPS
