// RUN: dsopt-opt %s -split-input-file -compile-products -verify-diagnostics | FileCheck %s

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// What products take of a table stays, for the program to name.
// CHECK: module @one attributes {{{.*}}exec.gemm_table = #exec.gemm_table<arch = "x86-64-v4", vector_bits = 512, choices = [#exec.gemm_choice<operands = f32, m = 40, n = 100, k = 30, blocking = <rows = 3, vectors = 7, band = 5, packing = none>>, #exec.gemm_choice<operands = f32, m = 50, n = 60, k = 70>, #exec.gemm_choice<operands = f32, m = 60, n = 50, k = 70>, #exec.gemm_choice<operands = f32, m = 4096, n = 20, k = 30, blocking = <rows = 12, vectors = 1, band = 9, packing = fused>>, #exec.gemm_choice<operands = f32, m = 4096, n = 21, k = 30>]>
module @one attributes {dsopt.target = #target, exec.gemm_table = #exec.gemm_table<arch = "x86-64-v4", vector_bits = 512, choices = [
    #exec.gemm_choice<operands = f32, m = 40, n = 100, k = 30, blocking = <rows = 3, vectors = 7, band = 5, packing = none>>,
    #exec.gemm_choice<operands = f32, m = 50, n = 60, k = 70>,
    #exec.gemm_choice<operands = f32, m = 60, n = 50, k = 70>,
    #exec.gemm_choice<operands = f32, m = 1, n = 2, k = 3>,
    #exec.gemm_choice<operands = f32, m = 4096, n = 20, k = 30, blocking = <rows = 12, vectors = 1, band = 9, packing = fused>>,
    #exec.gemm_choice<operands = f32, m = 4096, n = 21, k = 30>]>} {
  // A table decides by shape, not by where a result lies or what it is added to. 40 rows by 3 are 14 blocks of seven vectors.
  // CHECK: func.func nested @product0({{.*}} {exec.blocking = #exec.blocking<rows = 3, vectors = 7, band = 5, packing = none>, exec.product = #exec.product<m = 40, n = 100, k = 30, operands = f32, result = f32, lda = 30, ldb = 100, ldc = 100>, graph.range = array<i64: 98>}
  // CHECK: func.func nested @product1({{.*}} {exec.blocking = #exec.blocking<rows = 3, vectors = 7, band = 5, packing = none>, exec.product = #exec.product<{{.*}}ldc = 128, accumulates = true>
  // Other shapes are the model's.
  // CHECK: func.func nested @product2({{.*}} {exec.product = #exec.product<m = 41,
  // A part is cut as the model says, and not the library's: the whole is not.
  // CHECK: func.func nested @product3({{.*}} {exec.product = #exec.product<m = 2048, n = 20,
  // CHECK-NOT: func.func nested @product4
  module @kernels attributes {dsopt.target = #target} {}

  // CHECK-LABEL: func.func @segment
  func.func @segment(%a: memref<40x30xf32>, %b: memref<30x100xf32>, %c: memref<40x100xf32>, %far: memref<40x100xf32, strided<[128, 1]>>,
                     %e: memref<41x30xf32>, %f: memref<41x100xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: exec.gemm %{{.*}} by <@kernels::@product0 range 98> :
    exec.gemm %a, %b -> %c : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32>
    // CHECK: by <@kernels::@product1 range 98>
    exec.gemm %a, %b -> %far {into_gradient} : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32, strided<[128, 1]>>
    // CHECK: by <@kernels::@product2 range
    exec.gemm %e, %b -> %f : memref<41x30xf32>, memref<30x100xf32> -> memref<41x100xf32>
    return
  }
  // CHECK-LABEL: func.func @library
  func.func @library(%a: memref<50x70xf32>, %b: memref<70x60xf32>, %c: memref<50x60xf32>, %turned: memref<60x50xf32, strided<[1, 60]>>,
                     %at: memref<70x50xf32>, %bt: memref<60x70xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK-NOT: by <
    exec.gemm %a, %b -> %c : memref<50x70xf32>, memref<70x60xf32> -> memref<50x60xf32>
    // A product whose result lies as columns is its operands' the other way round: a layout may ask for that.
    exec.gemm %bt, %at -> %turned : memref<60x70xf32>, memref<70x50xf32> -> memref<60x50xf32, strided<[1, 60]>>
    return
  }
  // CHECK-LABEL: func.func @parts
  func.func @parts(%a: memref<2048x30xf32>, %b: memref<30x20xf32>, %c: memref<2048x20xf32>, %d: memref<30x21xf32>, %e: memref<2048x21xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: by <@kernels::@product3 range
    exec.gemm %a, %b -> %c of [4096, 20, 30] : memref<2048x30xf32>, memref<30x20xf32> -> memref<2048x20xf32>
    // CHECK-NOT: by <
    exec.gemm %a, %d -> %e of [4096, 21, 30] : memref<2048x30xf32>, memref<30x21xf32> -> memref<2048x21xf32>
    return
  }
}

// -----

// The library adds no bias.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// CHECK-LABEL: module @bias
module @bias attributes {dsopt.target = #target, exec.gemm_table = #exec.gemm_table<arch = "x86-64-v4", vector_bits = 512, choices = [
    #exec.gemm_choice<operands = f32, m = 50, n = 60, k = 70>]>} {
  module @kernels attributes {dsopt.target = #target} {}
  func.func @segment(%a: memref<50x70xf32>, %b: memref<70x60xf32>, %c: memref<50x60xf32>, %d: memref<60xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: by <@kernels::@product0 range
    // expected-warning @below {{exec.gemm_table leaves #exec.gemm_choice<operands = f32, m = 50, n = 60, k = 70> to the library, which adds no bias: it has a kernel here}}
    exec.gemm_epilogue bias %a, %b, %d -> %c : memref<50x70xf32>, memref<70x60xf32>, memref<60xf32> -> memref<50x60xf32>
    return
  }
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// expected-error @below {{exec.gemm_table is for znver4 with vectors of 512 bits, expected one for x86-64-v4 and 512}}
module attributes {dsopt.target = #target, exec.gemm_table = #exec.gemm_table<arch = "znver4", vector_bits = 512, choices = []>} {
  module @kernels attributes {dsopt.target = #target} {}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
module attributes {dsopt.target = #target, exec.gemm_table = #exec.gemm_table<arch = "x86-64-v4", vector_bits = 512, choices = [
    #exec.gemm_choice<operands = f32, m = 50, n = 100, k = 70, blocking = <rows = 9, vectors = 4, band = 1, packing = none>>]>} {
  module @kernels attributes {dsopt.target = #target} {}
  func.func @segment(%a: memref<50x70xf32>, %b: memref<70x100xf32>, %c: memref<50x100xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // expected-error @below {{exec.gemm_table has #exec.gemm_choice<operands = f32, m = 50, n = 100, k = 70, blocking = <rows = 9, vectors = 4, band = 1, packing = none>> for #exec.product<m = 50, n = 100, k = 70, operands = f32, result = f32, lda = 70, ldb = 100, ldc = 100>: sums, a line of b and a factor take 41 registers, and there are 32}}
    exec.gemm %a, %b -> %c : memref<50x70xf32>, memref<70x100xf32> -> memref<50x100xf32>
    return
  }
}
