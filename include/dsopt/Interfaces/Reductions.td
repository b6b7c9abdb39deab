//===- Reductions.td - how gradients are added over ranks -------*- tablegen -*-===//

#ifndef DSOPT_INTERFACES_REDUCTIONS
#define DSOPT_INTERFACES_REDUCTIONS

include "mlir/IR/EnumAttr.td"

def Dsopt_ReductionMethod : I32EnumAttr<"ReductionMethod", "how gradients come to the owners of their slices", [
    I32EnumAttrCase<"ReduceScatter", 0, "reduce_scatter">, I32EnumAttrCase<"AllToAll", 1, "all_to_all">]> {
  let cppNamespace = "::dsopt";
}

#endif // DSOPT_INTERFACES_REDUCTIONS
