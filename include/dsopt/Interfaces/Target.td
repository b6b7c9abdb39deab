//===- Target.td - what a module is compiled for ----------------*- tablegen -*-===//

#ifndef DSOPT_INTERFACES_TARGET
#define DSOPT_INTERFACES_TARGET

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def OptionsDialect : Dialect {
  let name = "dsopt";
  let cppNamespace = "::dsopt";
  let useDefaultAttributePrinterParser = 1;
}

def Dsopt_TargetKind : I32Enum<"TargetKind", "what runs the code", [I32EnumCase<"CPU", 0, "cpu">, I32EnumCase<"CUDA", 1, "cuda">]> {
  let cppNamespace = "::dsopt";
}

def Dsopt_TargetAttr : AttrDef<OptionsDialect, "Target"> {
  let mnemonic = "target";
  let summary = "what a module is compiled for";
  let description = [{
    The kind of device, the machine as LLVM says it (triple, processor and its features, each with
    + or -), the widest vectors that loops are to use, and the threads that routines have scratch
    for. The module has one as `dsopt.target` from attach-target on, which its segments follow, and
    each module of kernels in it one of its own. That of NVIDIA's devices names architectures, one
    or several in ascending order; the host's code is then for a baseline.

    ```mlir
    #target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 2, vector_bits = 256,
        features = ["+avx2", "+bmi", "+fma", ...]>
    module attributes {dsopt.target = #target} { ... }
    #device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80,sm_90a", threads = 2,
        vector_bits = 128, features = []>
    ```
  }];
  let parameters = (ins EnumParameter<Dsopt_TargetKind>:$kind, StringRefParameter<>:$triple,
                        StringRefParameter<>:$arch, "int64_t":$threads, "int64_t":$vector_bits,
                        "::mlir::ArrayAttr":$features);
  let assemblyFormat = "`<` $kind `,` struct($triple, $arch, $threads, $vector_bits, $features) `>`";
  let genVerifyDecl = 1;
  let genMnemonicAlias = 1;
  let extraClassDeclaration = [{
    /// Whether `features` has `+name`; what another feature implies is not looked at.
    bool hasFeature(::llvm::StringRef name);
  }];
}

#endif // DSOPT_INTERFACES_TARGET
