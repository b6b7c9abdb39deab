//===- ExecProducts.td - products that are compiled for their shape -*- tablegen -*-===//

#ifndef DSOPT_DIALECT_EXEC_EXECPRODUCTS
#define DSOPT_DIALECT_EXEC_EXECPRODUCTS

include "dsopt/Dialect/Exec/ExecBase.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_ProductAttr : AttrDef<Exec_Dialect, "Product"> {
  let mnemonic = "product";
  let summary = "all that a kernel of a batch of matrix products is compiled for";
  let description = [{
    `c = op(a) * op(b)` for each matrix of the batch: of `[m, k]` and `[k, n]` elements to `[m, n]`. `a` is
    stored as it is or, with `transpose_a`, as `[k, m]`, so is `b`; lines as stored begin `lda`, `ldb` and
    `ldc` elements apart, matrices of the batch by its dimensions' `strides_a`, `strides_b` and `strides_c`.
    With `addend` the sums begin with those of another matrix, which lies as `c`; with `accumulates` the kernel
    reads a flag and adds to `c` where it is not 0. With `bias` a value for each column, of `c`'s type, is added
    to complete sums before they are rounded; nothing else is added then.

    ```mlir
    #exec.product<m = 8, n = 4, k = 2, operands = f32, result = f32, lda = 2, ldb = 4, ldc = 4>
    ```
  }];
  let parameters = (ins "int64_t":$m, "int64_t":$n, "int64_t":$k, "::mlir::Type":$operands, "::mlir::Type":$result,
      "int64_t":$lda, "int64_t":$ldb, "int64_t":$ldc,
      DefaultValuedParameter<"bool", "false">:$transpose_a, DefaultValuedParameter<"bool", "false">:$transpose_b,
      DefaultValuedParameter<"bool", "false">:$addend, DefaultValuedParameter<"bool", "false">:$accumulates,
      DefaultValuedParameter<"bool", "false">:$bias,
      OptionalParameter<"::mlir::DenseI64ArrayAttr">:$batch, OptionalParameter<"::mlir::DenseI64ArrayAttr">:$strides_a,
      OptionalParameter<"::mlir::DenseI64ArrayAttr">:$strides_b,
      OptionalParameter<"::mlir::DenseI64ArrayAttr">:$strides_c);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Matrices of the batch.
    int64_t count() const {
      int64_t matrices = 1;
      if (getBatch())
        for (int64_t extent : getBatch().asArrayRef())
          matrices *= extent;
      return matrices;
    }
  }];
}

def Exec_ProductKernelAttr : AttrDef<Exec_Dialect, "ProductKernel"> {
  let mnemonic = "product_kernel";
  let summary = "a kernel that is compiled for a product, and what of its work threads can share: `range` blocks";
  let parameters = (ins "::mlir::SymbolRefAttr":$kernel, "int64_t":$range);
  let assemblyFormat = "`<` $kernel `range` $range `>`";
}

#endif // DSOPT_DIALECT_EXEC_EXECPRODUCTS
