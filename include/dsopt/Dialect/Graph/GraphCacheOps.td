//===- GraphCacheOps.td - what is kept of earlier positions -------*- tablegen -*-===//
//
// A program that generates is given rows, each a position of a sequence in a slot;
// mixers of positions keep what they need of them in caches.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHCACHEOPS
#define DSOPT_DIALECT_GRAPH_GRAPHCACHEOPS

include "dsopt/Dialect/Graph/GraphStateOps.td"
include "dsopt/Interfaces/CachingOpInterface.td"

def Graph_CacheOp : Graph_Op<"cache", [Symbol]> {
  let summary = "rows that a mixer of positions keeps, for each slot";
  let description = [{
    It outlives runs; nobody loads or saves it. A slot is one sequence; the element type is that of the rows
    that are kept.

    ```mlir
    graph.cache @cache.0 : tensor<4x2x1024x64xf32> // slots, heads, positions, elements
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Graph_Tensor>:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def Graph_CachedAttentionOp : Graph_Op<"cached_attention", [MemoryEffects<[MemRead<Graph_State>, MemWrite<Graph_State>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, DeclareOpInterfaceMethods<CachingOpInterface, ["getCaches"]>]> {
  let summary = "causal attention of rows that are each at a position of a slot";
  let description = [{
    `q` is `[1, heads, R, D]`, `k` `[1, key heads, R, D]`, `v` `[1, key heads, R, E]`: row r is at `positions[r]`
    of the sequence in `slots[r]`; with slot -1 it is none, and its result is 0. First each row of k and v is
    put at its place in `keys` and `values`, `[slots, key heads, positions, D or E]`; then row r reads what its slot
    has up to its own position. A mask, if there is one, is `[1, 1 or heads, 1 or R, positions]` and added to the
    scores. The result has the bits that `graph.attention` gives the row among all rows of its sequence.
  }];
  let arguments = (ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v, Graph_IntTensor:$slots,
                       Graph_IntTensor:$positions, Optional<Graph_FloatTensor>:$mask, FlatSymbolRefAttr:$keys,
                       FlatSymbolRefAttr:$values, F64Attr:$scale);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "operands `in` $keys `,` $values attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHCACHEOPS
