// RUN: dsopt-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(product-to-loops))" -verify-diagnostics

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{is the kernel of a product with type '(index, index, memref<6xf32>) -> ()', expected '(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) -> ()' and a range of 1}}
  func.func nested @product0(index, index, memref<6xf32>) attributes
      {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{expected '(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) -> ()' and a range of 1}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 2>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v2", threads = 1, vector_bits = 128, features = ["+sse4.2"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{is the kernel of #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4> for x86-64-v2, expected one that compile-products compiles}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

// expected-error @below {{module @kernels has no dsopt.target, expected what attach-target says}}
module @kernels {
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}
