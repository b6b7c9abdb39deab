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

#endif // DSOPT_INTERFACES_ENUMS
