//===- ExecProducts.td - products that are compiled for their shape -*- tablegen -*-===//

#ifndef DSOPT_DIALECT_EXEC_EXECPRODUCTS
#define DSOPT_DIALECT_EXEC_EXECPRODUCTS

include "dsopt/Dialect/Exec/ExecBase.td"
include "dsopt/Dialect/Exec/ExecEnums.td"
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
    to complete sums before they are rounded; nothing else is added then. A `packed` b is what a kernel that
    packs it for this product (`exec.packs`) has written: for each panel of columns the lines of its vectors, one
    behind the other for all of the contraction; lines and transposition are then those of what it was.

    ```mlir
    #exec.product<m = 8, n = 4, k = 2, operands = f32, result = f32, lda = 2, ldb = 4, ldc = 4>
    ```
  }];
  let parameters = (ins "int64_t":$m, "int64_t":$n, "int64_t":$k, "::mlir::Type":$operands, "::mlir::Type":$result,
      "int64_t":$lda, "int64_t":$ldb, "int64_t":$ldc,
      DefaultValuedParameter<"bool", "false">:$transpose_a, DefaultValuedParameter<"bool", "false">:$transpose_b,
      DefaultValuedParameter<"bool", "false">:$addend, DefaultValuedParameter<"bool", "false">:$accumulates,
      DefaultValuedParameter<"bool", "false">:$bias, DefaultValuedParameter<"bool", "false">:$packed,
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
    /// The same product of a b that is packed, or of one as it lies.
    ProductAttr withPacked(bool packed) const;
    /// The product whose result is this one's transposed, of b and a as they lie; its lines are close together.
    ProductAttr transposed() const;
    /// The same product of matrices of another type.
    ProductAttr withOperands(::mlir::Type operands) const;
    /// What kernels have as arguments: a row as far as the last matrix of the batch goes, of 16 bits as i16.
    ::mlir::MemRefType typeOfA() const;
    ::mlir::MemRefType typeOfB() const; ///< as it lies
    ::mlir::MemRefType typeOfC(::mlir::Type type) const;
    ::mlir::MemRefType typeOfPackedB(int64_t elements) const;
  }];
}

def Exec_ProductKernelAttr : AttrDef<Exec_Dialect, "ProductKernel"> {
  let mnemonic = "product_kernel";
  let summary = "a kernel that is compiled for a product, and what of its work threads can share: `range` blocks";
  let parameters = (ins "::mlir::SymbolRefAttr":$kernel, "int64_t":$range);
  let assemblyFormat = "`<` $kernel `range` $range `>`";
}

def Exec_BlockingAttr : AttrDef<Exec_Dialect, "Blocking"> {
  let mnemonic = "blocking";
  let summary = "how a product's kernel is cut: what may be chosen, none of which changes a bit";
  let description = [{
    A block has at most so many `rows` by so many `vectors` of columns, a band so many blocks of rows, for which
    all columns are computed one after the other. b is read where it lies (`none`), from a copy of a panel that
    the first block of rows makes as it reads it (`fused`) or that is made before (`transpose`), or, where it
    lies transposed and rows are few, a square at a time in registers (`registers`). For rows that are one block
    some lines of b are read at a time, as far as the panel goes, and sums are kept in a buffer (`lines`): more
    vectors than registers have room for. With `copies_a` a band of a is copied before. A block asks for the lines
    of the result of the block that is `result_ahead` further on before it has its own sums; -1: it does not. With
    `swaps` the kernel computes the transposed product: a and b change places in all of this, vectors are of the
    result's rows, and a block is turned before it is stored.

    ```mlir
    #exec.blocking<rows = 8, vectors = 3, band = 16, packing = fused>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$vectors, "int64_t":$band,
      EnumParameter<Exec_ProductPacking>:$packing, DefaultValuedParameter<"bool", "false">:$copies_a,
      DefaultValuedParameter<"int64_t", "-1">:$result_ahead, DefaultValuedParameter<"bool", "false">:$swaps);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same cut with a and b in other places, or as they are.
    BlockingAttr withSwaps(bool swaps) const;
  }];
}

def Exec_GemmChoiceAttr : AttrDef<Exec_Dialect, "GemmChoice"> {
  let mnemonic = "gemm_choice";
  let summary = "what a table chooses for products of a shape: a kernel's `blocking`, or without it the library";
  let description = [{
    For products of `batch` matrices of `operands`, however far apart lines and matrices are and whatever the
    result is added to: what ranks and layouts differ in decides nothing.
  }];
  let parameters = (ins "::mlir::Type":$operands, "int64_t":$m, "int64_t":$n, "int64_t":$k,
      DefaultValuedParameter<"bool", "false">:$transpose_a, DefaultValuedParameter<"bool", "false">:$transpose_b,
      DefaultValuedParameter<"int64_t", "1">:$batch, OptionalParameter<"::dsopt::exec::BlockingAttr">:$blocking);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The same product in other blocks, or, without, left to the library.
    GemmChoiceAttr withBlocking(BlockingAttr blocking) const;
    GemmChoiceAttr withoutBlocking() const { return withBlocking(BlockingAttr()); }
  }];
}

def Exec_GemmTableAttr : AttrDef<Exec_Dialect, "GemmTable"> {
  let mnemonic = "gemm_table";
  let summary = "choices that were measured on a processor (dsopt -tune)";
  let description = [{
    As `exec.gemm_table` of a module compile-products goes by it, for the products that it has, on the processor
    and with the vectors that it is for.

    ```mlir
    #exec.gemm_table<arch = "znver4", vector_bits = 512, choices = [
        #exec.gemm_choice<operands = f32, m = 256, n = 512, k = 128, transpose_b = true,
            blocking = <rows = 8, vectors = 3, band = 32, packing = transpose>>]>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$arch, "int64_t":$vector_bits, "::mlir::ArrayAttr":$choices);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // DSOPT_DIALECT_EXEC_EXECPRODUCTS
