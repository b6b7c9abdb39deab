//===- DistOps.td - the dist dialect: where state lives ---------*- tablegen -*-===//
//
// Buckets of state, who owns which slice of them, and the collectives that
// bring whole values to a block and its gradients back to their owners.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_DIST_DISTOPS
#define DSOPT_DIALECT_DIST_DISTOPS

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dsopt/Dialect/Dist/DistEnums.td"
include "dsopt/Interfaces/Reductions.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::dsopt::dist";
  let summary = "where state lives and who talks";
  let description = [{
    State is kept in buckets: flat buffers that hold the parameters of one
    block (or one shared parameter), cut into one slice for each rank along the
    axes that they name, those of the grid of ranks (`dist.grid`). Operations here have effects on their bucket:
    they are never merged or moved like pure values.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_AxesAttr : AttrDef<Dist_Dialect, "Axes"> {
  let mnemonic = "axes";
  let summary = "axes of the grid, or factors of them, from the slowest to the fastest";
  let description = [{
    `[edp, ep]` are ranks that differ along these axes alone. `[edp inner 4]` are four neighbours along
    one, and `[edp outer 4]` those that have the same place among their four.
  }];
  let parameters = (ins ArrayRefParameter<"::dsopt::AxisPart">:$parts);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_GridOp : Dist_Op<"grid", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the sizes of the axes that ranks lie along, from the slowest to the fastest";
  let description = [{
    A rank's number is that of its coordinates: pipeline position (`pp`), data-parallel ranks that
    experts are alike on (`edp`) and that they are spread over (`ep`), sequence shards (`sp`) and tensor
    shards (`tp`), the last counting fastest. A module has one grid at most, which is that of modules in
    it, too; one without has a rank alone.

    ```mlir
    dist.grid @grid [pp = 2, edp = 4, ep = 1, sp = 1, tp = 1]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "$sym_name custom<Sizes>($sizes) attr-dict";
  let hasVerifier = 1;
}

def Dist_RangeAttr : AttrDef<Dist_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "a parameter's place in its bucket: first element and number of elements";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$parameter, "int64_t":$offset, "int64_t":$elements);
  let assemblyFormat = "`<` $parameter `,` $offset `,` $elements `>`";
}
def Dist_RangeArrayAttr : TypedArrayAttrBase<Dist_RangeAttr, "an array of ranges">;

def Dist_StateAttr : AttrDef<Dist_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "a value that the optimizer keeps for each element: its role and element type";
  let parameters = (ins StringRefParameter<>:$role, "::mlir::Type":$type);
  let assemblyFormat = "`<` $role `:` $type `>`";
}
def Dist_StateArrayAttr : TypedArrayAttrBase<Dist_StateAttr, "an array of states">;

def Dist_BucketOp : Dist_Op<"bucket", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a flat buffer of parameters and its state, cut into one slice a rank";
  let description = [{
    `ranges` start at multiples of 64 elements, in the model's order; `elements`
    is their end rounded up to 64, `padded` that rounded up to 64 for each rank
    along `axes`, the axes of the grid that it is cut over, so that a rank's slice
    is an equal part of it. `blocks` lists the blocks that read
    it in order: one for an ordinary bucket, several for a shared (tied)
    parameter, which is a bucket of its own and has one gradient accumulator for
    each. `zero` is the stage it is partitioned by, `tier` the memory that the
    parameters are kept in, `state_tier` that of what the optimizer keeps, which updates
    them there. A `frozen` bucket has no
    gradient and no optimizer state. `states` are what the optimizer keeps, in
    the order in which updates take them, behind a copy of the parameters of type
    `master` where they are stored in a narrower one.
    `gradient` is the element type of accumulators, f32 where it is absent. Ranks along `distinct` axes have
    other elements in it: its parameters are tensor shards. Of other buckets they have the same.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, DenseI64ArrayAttr:$blocks,
      Dist_RangeArrayAttr:$ranges, I64Attr:$elements, I64Attr:$padded, Dist_AxesAttr:$axes,
      OptionalAttr<Dist_AxesAttr>:$distinct,
      I64Attr:$zero, DefaultValuedAttr<Dist_Tier, "::dsopt::dist::Tier::Device">:$tier, UnitAttr:$frozen, OptionalAttr<TypeAttr>:$gradient,
      OptionalAttr<TypeAttr>:$master, OptionalAttr<Dist_StateArrayAttr>:$states,
      DefaultValuedAttr<Dist_Tier, "::dsopt::dist::Tier::Device">:$state_tier);
  let assemblyFormat = [{
    $sym_name `:` $type `of` $blocks $ranges `elements` $elements `padded` $padded `over` $axes
    (`distinct` `over` $distinct^)? `zero` $zero (`in` $tier^)? (`frozen` $frozen^)? (`gradient` $gradient^)? (`master` $master^)? (`states` $states^)? (`kept` `in` $state_tier^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The ranks that it is cut for: those of the module's grid along its axes.
    int64_t getRanks();
    /// Elements of one rank's slice.
    int64_t getSlice() { return getPadded() / getRanks(); }
    /// What gradients are stored and added as.
    ::mlir::Type getGradientType() {
      return getGradient().value_or(::mlir::Type(::mlir::Float32Type::get(getContext())));
    }
    /// Whether it is a shared parameter's bucket.
    bool isTied() { return getBlocks().size() > 1; }
    /// Whether blocks read what a gather yields: a rank's device holds a slice of the parameters, or nothing.
    bool isSliced() { return getZero() == 3 && (getRanks() > 1 || getTier() != Tier::Device); }
  }];
}

/// `axes` are those of the grid whose ranks take part: the axes of the bucket.
class Dist_Collective<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Dist_GatherOp : Dist_Collective<"gather", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "yields a bucket's parameters whole: an all-gather of the ranks' slices";
  let description = [{
    Stands among the runs of a micro-batch. `parameters` lie in the bucket; the values are
    theirs, and end with the `dist.release` that takes them all. The collective runs before the
    next run behind it, for each window of micro-batches once. They travel as they are, `as`
    bf16 where they are f32, or `as` i8, as multiples of a scale for each 2048 elements of a slice: the
    values are then the rounded ones.

    ```mlir
    %w, %b = dist.gather @b0 [@w, @b] over [edp, ep, sp] : tensor<64x32xf32>, tensor<64xf32>
    %y = graph.run @block0.F(%x, %w, %b) : ...
    dist.release %w, %b : tensor<64x32xf32>, tensor<64xf32>
    %v = dist.gather @b1 [@v] over [edp, ep, sp] as bf16 : tensor<64x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefArrayAttr:$parameters, Dist_AxesAttr:$axes,
                       OptionalAttr<TypeAttr>:$wire);
  let results = (outs Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "$bucket $parameters `over` $axes (`as` $wire^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def Dist_ReleaseOp : Dist_Op<"release"> {
  let summary = "ends a gather: its values' bytes may be overwritten";
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    GatherOp getGather() { return getValues().front().getDefiningOp<GatherOp>(); }
  }];
}
def Dist_ReduceOp : Dist_Collective<"reduce"> {
  let summary = "adds a bucket's whole gradient over the ranks, each slice at its owner";
  let description = [{
    Stands among the runs of a micro-batch, behind the last one that adds to `gradients`, the
    states of one use of the bucket: `use` is the index of their block in the bucket's `blocks`.
    `type` is what they travel as, between ranks also what sums are rounded to: that of the
    accumulators, or bf16 where those are f32; or i4 `by` all_to_all, as multiples of a scale for each 256
    elements of half a slice, within nodes and then between them. `method` is how they travel: in the engine's
    reduction, or the parts of each slice to its owner, which adds them there. `order` is that of
    the additions: the canonical tree, or whatever the engine finds fastest.

    ```mlir
    graph.run @block0.W(%dy, %x) : ...
    dist.reduce @b0 use 0 of [@w.grad.0, @b.grad.0] over [edp, ep, sp] as f32
    graph.run @block1.W(%dz, %y) : ...
    dist.reduce @b1 use 0 of [@v.grad.0] over [edp, ep, sp] as bf16 by all_to_all
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, I64Attr:$use, FlatSymbolRefArrayAttr:$gradients,
                       Dist_AxesAttr:$axes, TypeAttr:$type,
                       DefaultValuedAttr<Dsopt_ReductionMethod, "::dsopt::ReductionMethod::ReduceScatter">:$method,
                       DefaultValuedAttr<Dist_ReductionOrder, "::dsopt::dist::ReductionOrder::Canonical">:$order);
  let assemblyFormat = [{
    $bucket `use` $use `of` $gradients `over` $axes `as` $type (`by` $method^)? (`order` $order^)? attr-dict
  }];
  let hasVerifier = 1;
}

/// A collective on values: pure, of the ranks along `axes`.
class Dist_ValueOp<string mnemonic, list<Trait> traits = []> : Dist_Op<mnemonic, !listconcat([Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Dist_SharedOp : Dist_ValueOp<"shared"> {
  let summary = "a whole value, as each tensor shard reads it";
  let description = [{
    Each of the results is the value; there is one for each shard of this rank. Nothing is computed and nothing
    moves: what it stands for is backward's, where the gradients of all shards are added along a tree, first
    those of this rank (`graph.tree_add`), then those of the ranks (`dist.all_reduce`). A kernel ends at it, so
    that how many shards a rank has decides no fusion. Over no axes the value may be a shard's own. That of a
    parameter whose gradient buckets add over ranks is `exact`: so is the tree.

    ```mlir
    %x0, %x1 = dist.shared %x over [tp] : tensor<8x64xf32> 2
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes, UnitAttr:$exact);
  let results = (outs Variadic<AnyStaticShapeTensor>:$shards);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Dist_AllReduceOp : Dist_ValueOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "adds a piece of each rank along the canonical tree";
  let description = [{
    Neighbours are added first, each sum is rounded to the value's type: at equal numbers of tensor shards the
    bits are those of `graph.tree_add`. All ranks have the result.

    ```mlir
    %y = dist.all_reduce %p over [tp] : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value `over` $axes attr-dict `:` type($value)";
}

/// A collective on values whose results have other extents along the first dimension.
class Dist_SlicesOp<string mnemonic> : Dist_ValueOp<mnemonic> {
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value `over` $axes attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def Dist_AllGatherOp : Dist_SlicesOp<"all_gather"> {
  let summary = "what each rank has, one behind the other along the first dimension";
  let description = [{
    What shards read of the result differs, so that backward adds what ranks have of its gradient
    (`dist.reduce_scatter`). Where all ranks compute the same of it (`alike`), each has the whole gradient and
    takes its own slice.

    ```mlir
    %y = dist.all_gather %x over [sp] : tensor<4x64xf32> to tensor<8x64xf32>
    %z = dist.all_gather %x over [tp] {alike} : tensor<4x64xf32> to tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes, UnitAttr:$alike);
}

def Dist_ReduceScatterOp : Dist_SlicesOp<"reduce_scatter"> {
  let summary = "a rank's slice, along the first dimension, of the sum of what all have";
  let description = [{
    Pieces are added as by `dist.all_reduce`. A slice is a multiple of 64 elements.

    ```mlir
    %x = dist.reduce_scatter %y over [sp] : tensor<8x64xf32> to tensor<4x64xf32>
    ```
  }];
}

def Dist_AllToAllOp : Dist_ValueOp<"all_to_all", [SameOperandsAndResultType]> {
  let summary = "hands each rank its slice along the first dimension, and gets what each has for this one";
  let description = [{
    ```mlir
    %y = dist.all_to_all %x over [sp] : tensor<2x4x64xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value `over` $axes attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dist_ShiftOp : Dist_ValueOp<"shift", [SameOperandsAndResultType]> {
  let summary = "hands a rank's value to the next one along a ring";
  let description = [{
    The last rank's goes to the first.

    ```mlir
    %y = dist.shift %x over [sp] : tensor<2x4x64xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, Dist_AxesAttr:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value `over` $axes attr-dict `:` type($value)";
}

class Dist_AttentionBase<string mnemonic> : Dist_ValueOp<mnemonic> {
  dag rows = (ins AnyStaticShapeTensor:$q, AnyStaticShapeTensor:$k, AnyStaticShapeTensor:$v);
  dag place = (ins Variadic<AnyStaticShapeTensor>:$masks, F64Attr:$scale, UnitAttr:$causal, I64Attr:$entries, I64Attr:$begin,
                   I64Attr:$shards, I64Attr:$pairs, Dist_AxesAttr:$axes);
  let assemblyFormat = "operands `over` $axes attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Dist_AttentionOp : Dist_AttentionBase<"attention"> {
  let summary = "attention of sequence shards, each of which has its rows and its columns";
  let description = [{
    There are `shards` of a sequence; batch entries are of `entries` neighbouring ones, one behind the other: of all,
    or of those that follow from the rank's place along `axes`, a ring. Rows of shard i meet the columns of
    shards i, i - 1, ..., i + 1 (modulo `shards`) in this order at every degree (ring attention: Liu et al., 2023), and in
    backward keys of shard j rows of j, j + 1, ..., j - 1. `masks` are of each meeting, by its number, for all entries.
    With `causal` row t of the sequence reads columns 0 to t + `begin`.
    Each head of k and v may be read by several of q. It is taken apart into `graph.attention_part` and `dist.shift`.

    ```mlir
    %o, %l = dist.attention %q, %k, %v over [sp] {entries = 1 : i64, shards = 4 : i64, ...} : (tensor<1x4x8x16xf32>, ...) -> (tensor<1x4x8x16xf32>, tensor<1x4x8xf32>)
    ```
  }];
  let arguments = !con(rows, place);
  let results = (outs AnyStaticShapeTensor:$result, AnyStaticShapeTensor:$lse);
}

def Dist_AttentionGradOp : Dist_AttentionBase<"attention_grad"> {
  let summary = "the gradients of dist.attention's q, k and v";
  let arguments = !con(rows, (ins AnyStaticShapeTensor:$result, AnyStaticShapeTensor:$lse, AnyStaticShapeTensor:$grad), place);
  let results = (outs AnyStaticShapeTensor:$q_grad, AnyStaticShapeTensor:$k_grad, AnyStaticShapeTensor:$v_grad);
}

#endif // DSOPT_DIALECT_DIST_DISTOPS
