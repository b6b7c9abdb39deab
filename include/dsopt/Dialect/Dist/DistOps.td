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
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::dsopt::dist";
  let summary = "where state lives and who talks";
  let description = [{
    State is kept in buckets: flat buffers that hold the parameters of one
    block (or one shared parameter), cut into one slice for each data-parallel
    rank. Operations here have effects on their bucket: they are never merged
    or moved like pure values.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_RangeAttr : AttrDef<Dist_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "a parameter's place in its bucket: first element and number of elements";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$parameter, "int64_t":$offset, "int64_t":$elements);
  let assemblyFormat = "`<` $parameter `,` $offset `,` $elements `>`";
}
def Dist_RangeArrayAttr : TypedArrayAttrBase<Dist_RangeAttr, "an array of ranges">;

def Dist_BucketOp : Dist_Op<"bucket", [Symbol]> {
  let summary = "a flat buffer of parameters and its state, cut into one slice a rank";
  let description = [{
    `ranges` start at multiples of 64 elements, in the model's order; `elements`
    is their end rounded up to 64, `padded` that rounded up to `ranks * 64`, so
    that a rank's slice is `padded / ranks`. `blocks` lists the blocks that read
    it in order: one for an ordinary bucket, several for a shared (tied)
    parameter, which is a bucket of its own and has one gradient accumulator for
    each. `zero` is the stage it is partitioned by. A `frozen` bucket has no
    gradient and no optimizer state. `states` names the optimizer's state.
    `gradient` is the element type of accumulators and of gradients on the wire,
    f32 where it is absent.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, DenseI64ArrayAttr:$blocks,
      Dist_RangeArrayAttr:$ranges, I64Attr:$elements, I64Attr:$padded, I64Attr:$ranks,
      I64Attr:$zero, UnitAttr:$frozen, OptionalAttr<TypeAttr>:$gradient, OptionalAttr<StrArrayAttr>:$states);
  let assemblyFormat = [{
    $sym_name `:` $type `of` $blocks $ranges `elements` $elements `padded` $padded `ranks` $ranks
    `zero` $zero (`frozen` $frozen^)? (`gradient` $gradient^)? (`states` $states^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of one rank's slice.
    int64_t getSlice() { return getPadded() / getRanks(); }
    /// What gradients are stored, sent and added as.
    ::mlir::Type getGradientType() {
      return getGradient().value_or(::mlir::Type(::mlir::Float32Type::get(getContext())));
    }
    /// Whether it is a shared parameter's bucket.
    bool isTied() { return getBlocks().size() > 1; }
  }];
}

def Dist_GatherOp : Dist_Op<"gather", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "makes a bucket's parameters whole on this rank until its release";
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let assemblyFormat = "$bucket attr-dict";
}
def Dist_ReleaseOp : Dist_Op<"release", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "ends a gather: the whole parameters may be overwritten";
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let assemblyFormat = "$bucket attr-dict";
}
def Dist_ReduceOp : Dist_Op<"reduce", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "adds a bucket's whole gradient over the ranks, each slice at its owner";
  let description = [{`use` is the index of this block in the bucket's `blocks`.}];
  let arguments = (ins FlatSymbolRefAttr:$bucket, I64Attr:$use);
  let assemblyFormat = "$bucket `use` $use attr-dict";
}

#endif // DSOPT_DIALECT_DIST_DISTOPS
