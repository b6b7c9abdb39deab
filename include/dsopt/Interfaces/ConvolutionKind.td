//===- ConvolutionKind.td - what a convolution gives ------------*- tablegen -*-===//

#ifndef DSOPT_INTERFACES_CONVOLUTIONKIND
#define DSOPT_INTERFACES_CONVOLUTIONKIND

include "mlir/IR/EnumAttr.td"

def Dsopt_ConvolutionKind : I32EnumAttr<"ConvolutionKind", "what is computed of y = convolution(x, w)", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Data", 1, "data">,
    I32EnumAttrCase<"Weight", 2, "weight">]> {
  let cppNamespace = "::dsopt";
}

#endif // DSOPT_INTERFACES_CONVOLUTIONKIND
