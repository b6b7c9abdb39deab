//===- GraphNNOps.td - normalization, softmax, activations, losses ----------===//
//
// Composite operations. Each has a gradient of its own (which saves less than
// the gradient of its parts would) and is decomposed into the primitives of
// GraphMathOps.td before kernels are formed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHNNOPS
#define DSOPT_DIALECT_GRAPH_GRAPHNNOPS

include "dsopt/Dialect/Graph/GraphBase.td"

def Graph_SoftmaxOp : Graph_PureOp<"softmax"> {
  let summary = "exp(x - max) / sum(exp(x - max)) along an axis (non-negative)";
  let arguments = (ins Graph_FloatTensor:$input, I64Attr:$axis);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_GeluOp : Graph_PureOp<"gelu"> {
  let summary = "x * Phi(x), by erf or by the tanh approximation";
  let arguments = (ins Graph_FloatTensor:$input, UnitAttr:$approximate_tanh);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_SiluOp : Graph_PureOp<"silu"> {
  let summary = "x / (1 + exp(-x))";
  let arguments = (ins Graph_FloatTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_RmsNormOp : Graph_PureOp<"rms_norm"> {
  let summary = "x * rstd * scale over the dimensions from `axis` on";
  let description = [{
    `rstd = 1 / sqrt(mean(x * x) + epsilon)` has the input's rank with 1 in the
    normalized dimensions; backward reads it. `scale` has their shape.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$rstd);
}
def Graph_LayerNormOp : Graph_PureOp<"layer_norm"> {
  let summary = "(x - mean) * rstd * scale + bias over the dimensions from `axis` on";
  let description = [{
    `mean` and `rstd = 1 / sqrt(variance + epsilon)` have the input's rank with
    1 in the normalized dimensions; backward reads them. `scale` and `bias`
    have the shape of the normalized dimensions.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$scale,
                       Optional<Graph_FloatTensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$mean, Graph_FloatTensor:$rstd);
}
def Graph_NllOp : Graph_PureOp<"nll"> {
  let summary = "negative log-likelihood of each row's label under softmax(logits)";
  let description = [{
    `logits` are `[N, C]`, `labels` are `[N]`; `loss[n] = lse[n] - logits[n, labels[n]]`
    with `lse = log(sum(exp(logits)))`, and 0 where the label is `ignore_index`.
    Cross-entropy is the sum of `loss` over the number of other labels.
  }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_IntTensor:$labels, I64Attr:$ignore_index);
  let results = (outs Graph_FloatTensor:$loss, Graph_FloatTensor:$lse);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHNNOPS
