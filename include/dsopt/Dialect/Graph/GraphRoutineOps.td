//===- GraphRoutineOps.td - composites that are one routine of the runtime --===//
//
// Operations whose intermediate matrices are too large to be values: they are
// raised from their parts before autodiff and computed tile by tile.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHROUTINEOPS
#define DSOPT_DIALECT_GRAPH_GRAPHROUTINEOPS

include "dsopt/Dialect/Graph/GraphBase.td"
include "dsopt/Interfaces/AttentionPart.td"

class Graph_RoutineOp<string mnemonic, list<Trait> traits = []> : Graph_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

def Graph_MatMulPartOp : Graph_RoutineOp<"matmul_part"> {
  let summary = "a part of a matrix product, with the bits of the whole";
  let description = [{
    Of the product of two matrices whose M, N and K are `whole`, one of them is cut: the operands
    are what the part takes. Where M or N is, the result is those rows or columns; rows may
    then be longer than the part's N, by elements that are undefined: the library chooses its
    code by their distance modulo 1024, which is that of the whole. Where K is, the result is
    the sum of what `addend`, the part before, has (none: nothing) and the part's own products, in the
    order in which the whole adds; but for the last part both are fp32. Parts begin at
    multiples of 2048 (Runtime/ABI.h).

    ```mlir
    %y0 = graph.matmul_part %x, %w0 {transpose_b, whole = array<i64: 8, 5000, 64>}
        : (tensor<8x64xf32>, tensor<2048x64xf32>) -> tensor<8x2952xf32>
    %s1 = graph.matmul_part %x1, %v1, %s0 {whole = array<i64: 8, 64, 5000>}
        : (tensor<8x2048xf32>, tensor<2048x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, Optional<Graph_FloatTensor>:$addend,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, DenseI64ArrayAttr:$whole);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// Columns of a result that has but `columns` of the whole's `whole`.
    static int64_t paddedColumns(int64_t columns, int64_t whole);
    /// M, N and K of the part.
    ::std::array<int64_t, 3> getExtents();
  }];
}

def Graph_AttentionOp : Graph_RoutineOp<"attention"> {
  let summary = "softmax(scale * q k^T + mask) v for each batch entry and head";
  let description = [{
    `q` is `[batch, heads, T, D]`, `k` `[batch, heads, S, D]`, `v` `[batch, heads,
    S, E]`; `mask`, if there is one, is added to the scores and broadcasts to
    `[batch, heads, T, S]`; with `causal` row t reads columns 0 to t + S - T alone. Where rows are part of a
    sequence, `begin` is the first one's column instead, and `step` further on for each rank along sp.
    `result` is `[batch, heads, T, E]`; `lse` `[batch, heads, T]` is the logarithm
    of each row's sum of exponentials, in fp32; backward reads it. A row that reads no
    column at all (or nothing but -inf) is NaN, as with the parts.
  }];
  let arguments = (ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v,
                       Optional<Graph_FloatTensor>:$mask, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$step);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$lse);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_AttentionGradOp : Graph_RoutineOp<"attention_grad"> {
  let summary = "the gradients of attention's q, k and v";
  let description = [{
    `result` and `lse` are what `graph.attention` returned for the same operands;
    `grad` is the gradient of `result`. The mask has none.
  }];
  let arguments = (ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v,
                       Optional<Graph_FloatTensor>:$mask, Graph_FloatTensor:$result, Graph_FloatTensor:$lse,
                       Graph_FloatTensor:$grad, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$step);
  let results = (outs Graph_FloatTensor:$q_grad, Graph_FloatTensor:$k_grad, Graph_FloatTensor:$v_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_AttentionPartOp : Graph_RoutineOp<"attention_part", [AttrSizedOperandSegments]> {
  let summary = "attention of rows to some of their columns, behind what they have read before";
  let description = [{
    As `graph.attention`, for rows of one of `shards` sequence shards and columns of another, which is
    `distance` before it (the last one lies before the first). Batch entries are of `entries` neighbouring shards, one
    behind the other, those of k and v by their numbers modulo `entries`. They are of all shards, or of those that
    follow from the rank's place along sp, where `group` ranks have the same. With `causal` row t of the sequence
    reads columns 0 to t + `begin`. k and v have all heads of q, or each is
    read by several. The result is of these columns and of those that `previous` is of, whose lse is
    `previous_lse`: both weighted by their sums of exponentials. It is fp32 where it is `partial`. Work is cut as for
    `pairs` of a batch entry and a head.
  }];
  let arguments = !con((ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v,
                            Optional<Graph_FloatTensor>:$mask, Optional<Graph_FloatTensor>:$previous,
                            Optional<Graph_FloatTensor>:$previous_lse), Dsopt_AttentionPlace, (ins UnitAttr:$partial));
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$lse);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_AttentionPartGradOp : Graph_RoutineOp<"attention_part_grad", [AttrSizedOperandSegments]> {
  let summary = "what rows and columns of two sequence shards give to the gradients of q, k and v";
  let description = [{
    `result` and `lse` are those of all columns that the rows read. What `q_previous`, `k_previous` and
    `v_previous` are is added. The gradient of q is fp32 where it is `q_partial`, those of k and v are where they are
    `column_partial`.
  }];
  let arguments = !con((ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v,
                            Optional<Graph_FloatTensor>:$mask, Graph_FloatTensor:$result, Graph_FloatTensor:$lse,
                            Graph_FloatTensor:$grad, Optional<Graph_FloatTensor>:$q_previous,
                            Optional<Graph_FloatTensor>:$k_previous, Optional<Graph_FloatTensor>:$v_previous),
                       Dsopt_AttentionPlace, (ins UnitAttr:$q_partial, UnitAttr:$column_partial));
  let results = (outs Graph_FloatTensor:$q_grad, Graph_FloatTensor:$k_grad, Graph_FloatTensor:$v_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_LinearNllOp : Graph_RoutineOp<"linear_nll"> {
  let summary = "nll of the logits x w^T + bias, which are never a value";
  let description = [{
    `x` is `[N, D]`, `weight` `[C, D]` (`[D, C]` without `transpose_b`), `bias`, if
    there is one, `[C]`, `labels` `[N]`; `loss` is that of `graph.nll`.
  }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$weight, Optional<Graph_FloatTensor>:$bias,
                       Graph_IntTensor:$labels, I64Attr:$ignore_index, UnitAttr:$transpose_b);
  let results = (outs Graph_FloatTensor:$loss);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_LinearNllGradOp : Graph_RoutineOp<"linear_nll_grad", [AttrSizedResultSegments]> {
  let summary = "linear_nll and its gradients in one pass over tiles of the logits";
  let description = [{
    Operands as of `graph.linear_nll`; `grad` `[N]` is the gradient of the loss.
    `weight_grad` and `bias_grad` are fp32 sums over the rows in order. Gradients
    that nothing needs are left out.
  }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$weight, Optional<Graph_FloatTensor>:$bias,
                       Graph_IntTensor:$labels, Graph_FloatTensor:$grad, I64Attr:$ignore_index, UnitAttr:$transpose_b);
  let results = (outs Graph_FloatTensor:$loss, Optional<Graph_FloatTensor>:$x_grad,
                      Optional<Graph_FloatTensor>:$weight_grad, Optional<Graph_FloatTensor>:$bias_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_CtcOp : Graph_RoutineOp<"ctc"> {
  let summary = "connectionist temporal classification: -log of the probability of each sample's targets";
  let description = [{
    `logs` are logarithms of probabilities, `[T, N, C]`; `targets` are `[N, S]`, or
    those of all samples one after the other; lengths say how many frames and targets
    each sample has, all in i64. `loss` is `[N]`; with `zero_infinity` what cannot be
    written in so many frames is 0. Lengths or targets out of range give NaN.
  }];
  let arguments = (ins Graph_FloatTensor:$logs, Graph_IntTensor:$targets, Graph_IntTensor:$input_lengths,
                       Graph_IntTensor:$target_lengths, I64Attr:$blank, UnitAttr:$zero_infinity);
  let results = (outs Graph_FloatTensor:$loss);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Graph_CtcGradOp : Graph_RoutineOp<"ctc_grad"> {
  let summary = "the gradient of ctc's logs, which come from a log_softmax";
  let description = [{
    exp(logs) less the share of a sample's paths that go through a class, as PyTorch
    has it. Operands as of `graph.ctc`; `grad` is the gradient of `loss`.
  }];
  let arguments = (ins Graph_FloatTensor:$logs, Graph_IntTensor:$targets, Graph_IntTensor:$input_lengths,
                       Graph_IntTensor:$target_lengths, Graph_FloatTensor:$grad, I64Attr:$blank,
                       UnitAttr:$zero_infinity);
  let results = (outs Graph_FloatTensor:$logs_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHROUTINEOPS
