//===- Epilogue.td - what a product does with its sums ----------*- tablegen -*-===//

#ifndef DSOPT_INTERFACES_EPILOGUE
#define DSOPT_INTERFACES_EPILOGUE

include "mlir/IR/EnumAttr.td"

/// The runtime's numbers (Runtime/Epilogue.h).
def Dsopt_Epilogue : I32EnumAttr<"Epilogue", "what a product does with its sums before they are rounded", [
    I32EnumAttrCase<"Bias", 0, "bias">, I32EnumAttrCase<"BiasGelu", 1, "bias_gelu">,
    I32EnumAttrCase<"GeluGrad", 2, "gelu_grad">]> {
  let cppNamespace = "::dsopt";
}

#endif // DSOPT_INTERFACES_EPILOGUE
