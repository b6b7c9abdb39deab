//===- GraphBranchOps.td - updates of parameters that a step may not reach --===//
//
// A file of its own, with a header of its own: few passes know of them. `scalars` is the
// f32 table of include/dsopt/Runtime/Scalars.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHBRANCHOPS
#define DSOPT_DIALECT_GRAPH_GRAPHBRANCHOPS

include "dsopt/Dialect/Graph/GraphBase.td"

def Graph_BranchUpdateOp : Graph_Op<"branch_update", [Pure]> {
  let summary = "the update of a parameter that a step may not reach";
  let description = [{
    `rule` names the operation whose arithmetic it has. An element whose gradient is -0 stays as it is, with
    its states: no micro-batch reached it. Of `adam`, the last state counts the steps that did, and corrects the
    bias; `decoupled` makes it AdamW.
  }];
  let arguments = (ins StrAttr:$rule, Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Variadic<Graph_FloatTensor>:$states, Graph_FloatTensor:$scalars, UnitAttr:$decoupled, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Variadic<Graph_FloatTensor>:$new_states);
  let assemblyFormat = "$rule operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHBRANCHOPS
