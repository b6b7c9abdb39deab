//===- GraphMathOps.td - elementwise, products, reductions, shapes ----------===//
//
// The primitive operations: what decompositions and gradients are made of.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHMATHOPS
#define DSOPT_DIALECT_GRAPH_GRAPHMATHOPS

include "dsopt/Dialect/Graph/GraphBase.td"

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

def Graph_ConstantOp : Graph_Op<"constant", [Pure, ConstantLike,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor known at compile time";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise: operands broadcast as in ONNX (numpy)
//===----------------------------------------------------------------------===//

class Graph_Unary<string mnemonic, string what>
    : Graph_PureOp<mnemonic, [Elementwise]> {
  let summary = what;
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
}
class Graph_Binary<string mnemonic, string what>
    : Graph_PureOp<mnemonic> {
  let summary = what;
  let arguments = (ins Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_Tensor:$result);
}
class Graph_Compare<string mnemonic, string what>
    : Graph_PureOp<mnemonic> {
  let summary = what;
  let arguments = (ins Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_BoolTensor:$result);
}

def Graph_NegOp : Graph_Unary<"neg", "-x">;
def Graph_AbsOp : Graph_Unary<"abs", "|x|">;
def Graph_SignOp : Graph_Unary<"sign", "-1, 0 or 1 by the sign of x">;
def Graph_ExpOp : Graph_Unary<"exp", "e to the x">;
def Graph_LogOp : Graph_Unary<"log", "natural logarithm">;
def Graph_SqrtOp : Graph_Unary<"sqrt", "square root">;
def Graph_ReciprocalOp : Graph_Unary<"reciprocal", "1 / x">;
def Graph_FloorOp : Graph_Unary<"floor", "the largest whole number that is not larger">;
def Graph_CeilOp : Graph_Unary<"ceil", "the smallest whole number that is not smaller">;
def Graph_RoundOp : Graph_Unary<"round", "the nearest whole number; of two the even one">;
def Graph_SinOp : Graph_Unary<"sin", "sine">;
def Graph_CosOp : Graph_Unary<"cos", "cosine">;
def Graph_AcosOp : Graph_Unary<"acos", "inverse cosine">;
def Graph_AcoshOp : Graph_Unary<"acosh", "inverse hyperbolic cosine">;
def Graph_AsinOp : Graph_Unary<"asin", "inverse sine">;
def Graph_AsinhOp : Graph_Unary<"asinh", "inverse hyperbolic sine">;
def Graph_AtanOp : Graph_Unary<"atan", "inverse tangent">;
def Graph_AtanhOp : Graph_Unary<"atanh", "inverse hyperbolic tangent">;
def Graph_CoshOp : Graph_Unary<"cosh", "hyperbolic cosine">;
def Graph_SinhOp : Graph_Unary<"sinh", "hyperbolic sine">;
def Graph_TanhOp : Graph_Unary<"tanh", "hyperbolic tangent">;
def Graph_ErfOp : Graph_Unary<"erf", "error function">;
def Graph_SigmoidOp : Graph_Unary<"sigmoid", "1 / (1 + exp(-x))">;
def Graph_ReluOp : Graph_Unary<"relu", "max(x, 0)">;
def Graph_NotOp : Graph_Unary<"not", "logical negation of a bool">;
def Graph_IsNaNOp : Graph_PureOp<"isnan"> {
  let summary = "true where x is not a number";
  let arguments = (ins Graph_FloatTensor:$input);
  let results = (outs Graph_BoolTensor:$result);
}

def Graph_AddOp : Graph_Binary<"add", "x + y">;
def Graph_SubOp : Graph_Binary<"sub", "x - y">;
def Graph_MulOp : Graph_Binary<"mul", "x * y">;
def Graph_DivOp : Graph_Binary<"div", "x / y; integers truncate towards zero">;
def Graph_RemOp : Graph_Binary<"rem", "the remainder of x / y, with the sign of x">;
def Graph_PowOp : Graph_Binary<"pow", "x to the y">;
def Graph_MinOp : Graph_Binary<"min", "the smaller; NaN if either is">;
def Graph_MaxOp : Graph_Binary<"max", "the larger; NaN if either is">;
def Graph_AndOp : Graph_Binary<"and", "and of bools, or of integers bit by bit">;
def Graph_OrOp : Graph_Binary<"or", "or of bools, or of integers bit by bit">;
def Graph_EqualOp : Graph_Compare<"equal", "x == y">;
def Graph_LessOp : Graph_Compare<"less", "x < y">;
def Graph_LessEqualOp : Graph_Compare<"less_equal", "x <= y">;
def Graph_GreaterOp : Graph_Compare<"greater", "x > y">;
def Graph_GreaterEqualOp : Graph_Compare<"greater_equal", "x >= y">;

def Graph_TreeAddOp : Graph_PureOp<"tree_add", [SameTypeOperands]> {
  let summary = "x + y of two neighbouring pieces of a sum, rounded";
  let description = [{
    A node of the tree by which pieces of tensor shards are added. It is a kernel of its own and rounded to its
    type, in every layout: the ranks of `dist.all_reduce` add the rest of the tree in the same way. Of a parameter's
    gradient (`exact`) buckets add the rest: its pieces are stored as accumulators are.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, UnitAttr:$exact);
  let results = (outs Graph_FloatTensor:$result);
}

def Graph_WhereOp : Graph_PureOp<"where"> {
  let summary = "lhs where the condition holds, rhs elsewhere";
  let description = [{A `branch` is what a model's `if` became: build-backward asks which parameters a step reaches.}];
  let arguments = (ins Graph_BoolTensor:$condition, Graph_Tensor:$lhs, Graph_Tensor:$rhs, UnitAttr:$branch);
  let results = (outs Graph_Tensor:$result);
}
def Graph_CastOp : Graph_ShapedOp<"cast", [SameOperandsAndResultShape]> {
  let summary = "the same values in the result's element type";
  let description = [{
    Float to integer truncates towards zero; anything to bool is `x != 0`.
  }];
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
}

def Graph_PowerOfTwoRounding : ConfinedAttr<StrAttr, [AttrConstraint<
    CPred<"::llvm::is_contained({\"up\", \"down\"}, ::llvm::cast<::mlir::StringAttr>($_self).getValue())">,
    "'up' or 'down'">]>;

def Graph_RoundToOp : Graph_PureOp<"round_to", [Elementwise]> {
  let summary = "the nearest value that a narrower float type holds, in the operand's type";
  let description = [{
    What converting to the type `to` and back gives: ties go to the even one. What is too large
    becomes infinite (NaN where the type has no infinity), or the largest number with
    `saturate`; a type of finite numbers alone always saturates. Of powers of two (f8E8M0FNU)
    `toward` may name the next one `up` or `down`, and the sign is dropped. The gradient passes
    as it is.
  }];
  let arguments = (ins Graph_FloatTensor:$input, TypeAttr:$to, UnitAttr:$saturate,
                       OptionalAttr<Graph_PowerOfTwoRounding>:$toward);
  let results = (outs Graph_FloatTensor:$result);
}

def Graph_DropoutOp : Graph_PureOp<"dropout"> {
  let summary = "x / (1 - ratio), or 0 with probability ratio; x outside of training";
  let description = [{
    `key` says which micro-batch this is (Context.h: seed, step, global
    micro-batch, training). `stream` is a constant of two integers that tells the
    operations of a model apart; as an operand, and as two numbers that are never
    equal, so that blocks that differ in it alone share their code. What becomes of
    an element follows from both and from its place in row-major order, which
    reshapes keep; a tensor shard's elements have the places of these `runs` of the whole value, the first of
    which begins at `begin`, and those of a sequence shard the places of `time_runs` from `time_begin` on. The gradient is the same operation on the result's gradient.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_IntTensor:$key, Graph_IntTensor:$stream,
                       F64Attr:$ratio, DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$begin,
                       OptionalAttr<Graph_RunsAttr>:$runs,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$time_begin,
                       OptionalAttr<Graph_RunsAttr>:$time_runs);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_UniformOp : Graph_ShapedOp<"uniform"> {
  let summary = "random numbers from 0 to below 1, multiples of 2^-24 (f32)";
  let description = [{
    `key` and `stream` as of `graph.dropout`, whether this is training or not. Streams that
    differ in either number give other numbers (Context.h).
  }];
  let arguments = (ins Graph_IntTensor:$key, Graph_IntTensor:$stream);
  let results = (outs Graph_FloatTensor:$result);
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

def Graph_MatMulOp : Graph_PureOp<"matmul"> {
  let summary = "matrix product, batched over equal leading dimensions";
  let description = [{
    `[batch..., M, K] x [batch..., K, N] -> [batch..., M, N]`. Both operands
    have the same rank (at least 2) and the same leading dimensions: the
    importer folds or expands what ONNX broadcasts. `transpose_a` (`_b`) reads
    the operand's last two dimensions swapped.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Graph_FloatTensor:$result);
}

class Graph_Reduce<string mnemonic, string what> : Graph_PureOp<mnemonic> {
  let summary = what;
  let description = [{
    `axes` are ascending, non-negative and may be empty (then nothing is
    reduced). Reduced dimensions have size 1 with `keepdims` and vanish without.
  }];
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$axes, UnitAttr:$keepdims);
  let results = (outs Graph_Tensor:$result);
}
def Graph_ReduceSumOp : Graph_Reduce<"reduce_sum", "sum over axes">;
def Graph_ReduceMeanOp : Graph_Reduce<"reduce_mean", "mean over axes">;
class Graph_Extremum<string mnemonic, string what> : Graph_Reduce<mnemonic, what> {
  let description = [{
    As the other reductions. Equal extrema share the gradient; with `first` the first
    of them, in row-major order, takes it.
  }];
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$axes, UnitAttr:$keepdims, UnitAttr:$first);
}
def Graph_ReduceMaxOp : Graph_Extremum<"reduce_max", "maximum over axes">;
def Graph_ReduceMinOp : Graph_Extremum<"reduce_min", "minimum over axes">;
def Graph_ReduceProdOp : Graph_Reduce<"reduce_prod", "product over axes">;

def Graph_CumSumOp : Graph_PureOp<"cumsum"> {
  let summary = "running sum along an axis";
  let arguments = (ins Graph_Tensor:$input, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Graph_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

class Graph_BitsOp<string mnemonic, string what> : Graph_Op<mnemonic, [Pure]> {
  let summary = what;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Graph_SignBitsOp : Graph_BitsOp<"sign_bits", "the signs of each 32 elements of the last dimension as an i32"> {
  let description = [{
    Bit i is 1 where element i is not below 0.

    ```mlir
    %bits = graph.sign_bits %x : (tensor<64x32xf32>) -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Graph_FloatTensor:$input);
  let results = (outs Graph_IntTensor:$result);
}
def Graph_UnpackBitsOp : Graph_BitsOp<"unpack_bits", "1 or -1 for each bit of an i32, in a last dimension of 32"> {
  let arguments = (ins Graph_IntTensor:$input);
  let results = (outs Graph_FloatTensor:$result);
}

def Graph_BitcastOp : Graph_BitsOp<"bitcast", "the same bits as another type of that width"> {
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
}
def Graph_IotaOp : Graph_BitsOp<"iota", "each element's place along an axis, from 0 on"> {
  let description = [{
    ```mlir
    %place = graph.iota {axis = 1} : () -> tensor<64x32xi32>
    ```
  }];
  let arguments = (ins I64Attr:$axis);
  let results = (outs Graph_IntTensor:$result);
}

//===----------------------------------------------------------------------===//
// Shapes and data movement
//===----------------------------------------------------------------------===//

def Graph_ReshapeOp : Graph_ShapedOp<"reshape"> {
  let summary = "the same elements in row-major order under another shape; a view";
  let arguments = (ins Graph_Tensor:$input, Graph_NoView:$view);
  let results = (outs Graph_Tensor:$result);
}
def Graph_ExpandOp : Graph_ShapedOp<"expand"> {
  let summary = "broadcasts to the result's shape (numpy rules, one way)";
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
}
def Graph_TransposeOp : Graph_PureOp<"transpose"> {
  let summary = "result dimension i is input dimension perm[i]";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$perm,
                       Graph_NoView:$view);
  let results = (outs Graph_Tensor:$result);
}
def Graph_ConcatOp : Graph_PureOp<"concat"> {
  let summary = "operands one after the other along an axis (non-negative)";
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, I64Attr:$axis, Graph_NoView:$view);
  let results = (outs Graph_Tensor:$result);
}
def Graph_SliceOp : Graph_PureOp<"slice"> {
  let summary = "result[i] = input[starts + i * steps], one entry a dimension";
  let description = [{
    All three lists have one entry for each dimension; `sizes` is the result's
    shape and steps may be negative. Every element read lies inside the input.
  }];
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$steps, Graph_NoView:$view);
  let results = (outs Graph_Tensor:$result);
}
def Graph_SliceGradOp : Graph_ShapedOp<"slice_grad"> {
  let summary = "zeros with result[starts + i * steps] = input[i]; the adjoint of slice";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs Graph_Tensor:$result);
}
def Graph_PadOp : Graph_PureOp<"pad"> {
  let summary = "the input between `lows` and `highs` elements of a constant; negative counts crop";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$lows,
                       DenseI64ArrayAttr:$highs, TypedAttrInterface:$value);
  let results = (outs Graph_Tensor:$result);
}
def Graph_GatherOp : Graph_PureOp<"gather"> {
  let summary = "slices of data along an axis, chosen by indices (negative ones count from the end)";
  let description = [{Data gets no gradient of slices at `padding_index`.}];
  let arguments = (ins Graph_Tensor:$data, Graph_IntTensor:$indices, I64Attr:$axis,
                       OptionalAttr<I64Attr>:$padding_index);
  let results = (outs Graph_Tensor:$result);
}
def Graph_GatherGradOp : Graph_ShapedOp<"gather_grad"> {
  let summary = "zeros with each slice of grad added at its index; the adjoint of gather";
  let description = [{
    Slices with equal indices are added in the order of the indices.
  }];
  let arguments = (ins Graph_FloatTensor:$grad, Graph_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_GatherElementsOp : Graph_PureOp<"gather_elements"> {
  let summary = "result[i..., j, k...] = data[i..., indices[i..., j, k...], k...]";
  let arguments = (ins Graph_Tensor:$data, Graph_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
}
def Graph_OneHotOp : Graph_PureOp<"one_hot"> {
  let summary = "appends a dimension of `depth`: 1.0 at the index, 0.0 elsewhere (f32)";
  let description = [{
    An index outside `[0, depth)` gives a row of zeros.
  }];
  let arguments = (ins Graph_IntTensor:$indices, I64Attr:$depth);
  let results = (outs Graph_FloatTensor:$result);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHMATHOPS
