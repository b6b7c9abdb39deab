//===- GraphLocalStepOps.td - updates by which ranks move apart for a while ===//
//
// A file of its own, with a header of its own: few passes know of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHLOCALSTEPOPS
#define DSOPT_DIALECT_GRAPH_GRAPHLOCALSTEPOPS

include "dsopt/Dialect/Graph/GraphBase.td"

class Graph_LocalStep<string mnemonic, string what> : Graph_Op<mnemonic, [Pure]> {
  let summary = what;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_ZeroOneAdamOp : Graph_LocalStep<"zero_one_adam", "0/1 Adam (Lu et al., 2022): a step on the mean of whole gradients"> {
  let description = [{
    `parameter` is the point that ranks have in common, and `u` how far this one is from it: nowhere, as yet.
    No bias is corrected.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$u, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m,
                      Graph_FloatTensor:$new_v, Graph_FloatTensor:$new_u);
}
def Graph_ZeroOneAdamLocalOp : Graph_LocalStep<"zero_one_adam_local", "a step of one rank on its own gradient"> {
  let description = [{
    `u` moves, the common point does not. Elements whose variance froze at 0 stay.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$u, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m, Graph_FloatTensor:$new_u);
}
def Graph_ZeroOneAdamJoinOp : Graph_LocalStep<"zero_one_adam_join", "where ranks meet again"> {
  let description = [{
    `u` is what they agreed on, in units of momenta times rates: the common point moves by it, the momentum
    follows from it, and no rank is anywhere else.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$m, Graph_FloatTensor:$u,
                       Graph_FloatTensor:$v, Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m, Graph_FloatTensor:$new_u);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHLOCALSTEPOPS
