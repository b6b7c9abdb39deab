//===- DistEnums.td - choices of the dist dialect --------------*- tablegen -*-===//

#ifndef DSOPT_DIALECT_DIST_DISTENUMS
#define DSOPT_DIALECT_DIST_DISTENUMS

include "mlir/IR/EnumAttr.td"

def Dist_Tier : I32EnumAttr<"Tier", "the memory that a bucket is kept in", [
    I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">, I32EnumAttrCase<"Disk", 2, "disk">]> {
  let cppNamespace = "::dsopt::dist";
}

def Dist_ReductionOrder : I32EnumAttr<"ReductionOrder", "in which order the ranks' gradients are added", [
    I32EnumAttrCase<"Canonical", 0, "canonical">, I32EnumAttrCase<"Fast", 1, "fast">]> {
  let cppNamespace = "::dsopt::dist";
}

#endif // DSOPT_DIALECT_DIST_DISTENUMS
