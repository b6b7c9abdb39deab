//===- GraphGradientOps.td - gradients that the model itself decides --------===//
//
// What a model says about its own gradient. Both operations are gone once
// backward is built and composites are decomposed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHGRADIENTOPS
#define DSOPT_DIALECT_GRAPH_GRAPHGRADIENTOPS

include "dsopt/Dialect/Graph/GraphBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_StopGradientOp : Graph_PureOp<"stop_gradient"> {
  let summary = "x itself, whose gradient goes no further (PyTorch's detach)";
  let arguments = (ins Graph_FloatTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
}

def Graph_CustomGradientOp : Graph_Op<"custom_gradient", [Pure, AttrSizedOperandSegments, IsolatedFromAbove,
    SingleBlock]> {
  let summary = "values whose gradient is given (PyTorch's autograd.Function)";
  let description = [{
    The results are `values`. `backward` makes the gradients of `inputs` from
    `saved` and the gradients of those results that are of floating point, zeros
    where nothing reads one; its arguments are these, in that order. Nothing else
    has a gradient: not `values`, not `saved`. `number` tells the calls of one
    function apart: each has a gradient of its own, which need not be linear.
  }];
  let arguments = (ins Variadic<Graph_FloatTensor>:$inputs, Variadic<Graph_Tensor>:$values,
                       Variadic<Graph_Tensor>:$saved, I64Attr:$number);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$backward);
  let assemblyFormat = [{
    $number `of` `(` ($inputs^ `:` type($inputs))? `)` `is` `(` ($values^ `:` type($values))? `)`
    `saved` `(` ($saved^ `:` type($saved))? `)` $backward attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"CustomGradientOp">]> {
  let summary = "the gradients that a backward makes";
  let arguments = (ins Variadic<Graph_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHGRADIENTOPS
