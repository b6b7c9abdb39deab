//===- ProductCallOpInterface.td - calls whose products may be kernels ------===//
#ifndef DSOPT_DIALECT_EXEC_PRODUCTCALL
#define DSOPT_DIALECT_EXEC_PRODUCTCALL
include "mlir/IR/OpBase.td"

def ProductCallOpInterface : OpInterface<"ProductCallOpInterface"> {
  let cppNamespace = "::dsopt::exec";
  let description = [{
    What compile-products asks of an operation of a segment that multiplies matrices. Attached by external
    models (lib/Conversion/ExecToLLVM).
  }];
  let methods = [
    InterfaceMethod<[{
      Appends what kernels of its products have to be compiled for, in an order of its own; null for one that
      is the library's alone. Emits an error and fails where the operands have no such form.
    }], "::llvm::LogicalResult", "collectProducts",
      (ins "::llvm::SmallVectorImpl<::dsopt::exec::ProductAttr> &":$products)>,
    InterfaceMethod<[{
      M, N and K of what its first product is a part of, as the kernel sees them; empty where it is no part.
    }], "::llvm::ArrayRef<int64_t>", "getWholeProduct", (ins), "", "return {};">,
    InterfaceMethod<"Takes the products' kernels, in that order; null for those of the library.",
      "void", "setProductKernels", (ins "::llvm::ArrayRef<::dsopt::exec::ProductKernelAttr>":$kernels)>,
    InterfaceMethod<"b of its one product, where a kernel may read that packed (pack-weights); null otherwise.",
      "::mlir::Value", "getPackableB", (ins), "", "return {};">,
    InterfaceMethod<"Takes what stands for the packable b.", "void", "setPackedB", (ins "::mlir::Value":$packed), "",
      [{ llvm_unreachable("no b is packable"); }]>,
  ];
}
#endif
