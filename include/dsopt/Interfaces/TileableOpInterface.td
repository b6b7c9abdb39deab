//===- TileableOpInterface.td - a product that can be computed in parts ------===//
#ifndef DSOPT_INTERFACES_TILEABLE
#define DSOPT_INTERFACES_TILEABLE
include "mlir/IR/OpBase.td"

def TileableOpInterface : OpInterface<"TileableOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    What tile-products asks of a product of two matrices: whether it can be computed in
    parts, with the bits of the whole, and those. Attached by external models
    (lib/Dialect/Graph/GraphTiling.cpp).
  }];
  let methods = [
    InterfaceMethod<"Whether parts have the bits of the whole, its types being what they are.",
      "bool", "canBeCut">,
    StaticInterfaceMethod<"Parts begin at multiples of it, and fewer than two of it are not cut.",
      "int64_t", "getCutUnit">,
    InterfaceMethod<"The dimension of the product that an operand's rows are along.",
      "::dsopt::Cut", "getCut", (ins "unsigned":$operand)>,
    InterfaceMethod<[{
      Builds a part, and what shows those elements of operands that it meets. Of a part along N, rows may be
      longer than what is in them; along K, all but the last are sums in fp32.
    }], "::mlir::Value", "buildPart", (ins "::mlir::OpBuilder &":$builder, "const ::dsopt::ProductPart &":$part)>,
  ];
}
#endif
