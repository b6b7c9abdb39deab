//===- GraphEnums.td - choices of the graph dialect ------------*- tablegen -*-===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHENUMS
#define DSOPT_DIALECT_GRAPH_GRAPHENUMS

include "mlir/IR/EnumAttr.td"

/// Of a movement that needs no code: a routine at one of its ends takes strides (Layouts.h).
def Graph_ViewKind : I32Enum<"View", "how a movement is no code of its own", [
    I32EnumCase<"None", 0, "none">, I32EnumCase<"Read", 1, "read">, I32EnumCase<"Write", 2, "write">]> {
  let cppNamespace = "::dsopt::graph";
}

def Graph_Iteration : I32Enum<"Iteration", "what a kernel's loop runs over (Fuse/Passes.td)", [
    I32EnumCase<"Rows", 0, "rows">, I32EnumCase<"Columns", 1, "columns">, I32EnumCase<"Flat", 2, "flat">]> {
  let cppNamespace = "::dsopt::graph";
}

def Graph_Role : I32EnumAttr<"Role", "what a state is to its parameter", [
    I32EnumAttrCase<"Gradient", 0, "gradient">, I32EnumAttrCase<"Master", 1, "master">,
    I32EnumAttrCase<"Optimizer", 2, "optimizer">]> {
  let cppNamespace = "::dsopt::graph";
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHENUMS
