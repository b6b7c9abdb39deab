//===- AttentionPart.td - where rows and columns of a part of attention are -===//
#ifndef DSOPT_INTERFACES_ATTENTIONPART
#define DSOPT_INTERFACES_ATTENTIONPART
include "mlir/IR/OpBase.td"

/// What `graph.attention_part` and what it becomes are told (GraphRoutineOps.td).
defvar Dsopt_AttentionPlace = (ins F64Attr:$scale, UnitAttr:$causal, I64Attr:$shards, I64Attr:$distance,
    I64Attr:$entries, I64Attr:$group, I64Attr:$begin, I64Attr:$pairs);

#endif
