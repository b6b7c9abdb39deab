//===- Enums.td - choices that several dialects have ------------*- tablegen -*-===//

#ifndef DSOPT_INTERFACES_ENUMS
#define DSOPT_INTERFACES_ENUMS

include "mlir/IR/EnumAttr.td"

def Dsopt_Phase : I32Enum<"Phase", "forward, the part of backward that feeds other blocks, weight gradients; evaluation", [
    I32EnumCase<"F", 0>, I32EnumCase<"B", 1>, I32EnumCase<"W", 2>, I32EnumCase<"E", 3>]> {
  let cppNamespace = "::dsopt";
}

def Dsopt_ScatterMode : I32EnumAttr<"ScatterMode", "how a row and its update are combined", [
    I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"Max", 4, "max">]> {
  let cppNamespace = "::dsopt";
}

def Dsopt_Combine : I32EnumAttr<"Combine", "how what micro-batches give of a metric becomes one number (Runtime/Metrics.h)", [
    I32EnumAttrCase<"Mean", 0, "mean">, I32EnumAttrCase<"Root", 1, "root">, I32EnumAttrCase<"Ratio", 2, "ratio">,
    I32EnumAttrCase<"Exponential", 3, "exponential">, I32EnumAttrCase<"F1", 4, "f1">,
    I32EnumAttrCase<"Precision", 5, "precision">, I32EnumAttrCase<"Recall", 6, "recall">]> {
  let cppNamespace = "::dsopt";
}

#endif // DSOPT_INTERFACES_ENUMS
