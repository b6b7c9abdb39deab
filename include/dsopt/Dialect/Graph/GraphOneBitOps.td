//===- GraphOneBitOps.td - 1-bit LAMB ---------------------------------------===//
//
// A file of its own, with a header of its own: few passes know of them. `scalars` is the
// f32 table of include/dsopt/Runtime/Scalars.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHONEBITOPS
#define DSOPT_DIALECT_GRAPH_GRAPHONEBITOPS

include "dsopt/Dialect/Graph/GraphBase.td"

class Graph_OneBitOp<string mnemonic, string what> : Graph_Op<mnemonic, [Pure]> {
  let summary = what;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_OneBitLambOp : Graph_OneBitOp<"onebit_lamb", "1-bit LAMB (Li et al., 2021): LAMB until its variance freezes"> {
  let description = [{
    `onebit_lamb_direction`, behind the freeze `onebit_lamb_frozen`, then `lamb_step`. The fresh variance goes on
    behind the freeze, where `compress-gradients` writes it, and says how much the frozen one is off.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$v_fresh,
                       Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m,
                      Graph_FloatTensor:$new_v, Graph_FloatTensor:$new_v_fresh);
}
def Graph_OneBitLambDirectionOp : Graph_OneBitOp<"onebit_lamb_direction", "lamb_direction; the fresh variance is the variance"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$v_fresh,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$direction, Graph_FloatTensor:$new_m, Graph_FloatTensor:$new_v,
                      Graph_FloatTensor:$new_v_fresh);
}
def Graph_OneBitLambFrozenOp : Graph_OneBitOp<"onebit_lamb_frozen", "where 1-bit LAMB goes behind its freeze: m / (sqrt(v) + eps) + decay * p"> {
  let description = [{
    Elements whose variance froze at 0 stay: they are padding, or had no gradient before.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$direction);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHONEBITOPS
