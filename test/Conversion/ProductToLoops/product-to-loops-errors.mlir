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

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{cut by #exec.blocking<rows = 8, vectors = 1, band = 1, packing = transpose>: b does not lie transposed, expected packing none, fused or lines}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = transpose>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{packing = none>: b lies transposed, expected packing transpose or registers}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 3, ldc = 4, transpose_b = true>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{a square of b in registers leaves room for one vector of at most 13 rows, got vectors = 1 and rows = 15}}
  func.func nested @product0(index, index, memref<90xf32>, memref<12xf32>, memref<120xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 16, vectors = 1, band = 1, packing = registers>,
       exec.product = #exec.product<m = 30, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 3, ldc = 4, transpose_b = true>, graph.range = array<i64: 2>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{copies_a = true>: a does not lie transposed, expected no copies_a}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none, copies_a = true>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "cooperlake", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{packing = none>: a lies transposed in 16 bits, expected copies_a}}
  func.func nested @product0(index, index, memref<6xi16>, memref<12xi16>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = bf16, result = f32, lda = 2, ldb = 4, ldc = 4, transpose_a = true>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{packing = none>: a is widened as it is copied, expected copies_a}}
  func.func nested @product0(index, index, memref<6xi16>, memref<12xi16>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = bf16, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{copies and sums take 6412800 bytes of a thread's stack, expected at most 4194304}}
  func.func nested @product0(index, index, memref<1600000xf32>, memref<4000xf32>, memref<6400xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1000, packing = none, copies_a = true>,
       exec.product = #exec.product<m = 1600, n = 4, k = 1000, operands = f32, result = f32, lda = 1600, ldb = 4, ldc = 4, transpose_a = true>, graph.range = array<i64: 200>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512bf16", "+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{tiles are of copies of b, expected packing fused or transpose}}
  func.func nested @product0(index, index, memref<1024xi16>, memref<1024xi16>, memref<1024xi16>) attributes
      {exec.blocking = #exec.blocking<rows = 32, vectors = 2, band = 1, packing = none>,
       exec.product = #exec.product<m = 32, n = 32, k = 32, operands = bf16, result = bf16, lda = 32, ldb = 32, ldc = 32>, graph.range = array<i64: 2>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512bf16", "+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{tiles have 16 rows, got blocks of 8}}
  func.func nested @product0(index, index, memref<1024xi16>, memref<1024xi16>, memref<1024xi16>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 2, band = 1, packing = fused>,
       exec.product = #exec.product<m = 32, n = 32, k = 32, operands = bf16, result = bf16, lda = 32, ldb = 32, ldc = 32>, graph.range = array<i64: 8>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512bf16", "+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{sums, their rows' part of a and one of b take 9 tiles, and there are 8}}
  func.func nested @product0(index, index, memref<1024xi16>, memref<2048xi16>, memref<2048xi16>) attributes
      {exec.blocking = #exec.blocking<rows = 32, vectors = 3, band = 1, packing = fused>,
       exec.product = #exec.product<m = 32, n = 48, k = 32, operands = bf16, result = bf16, lda = 32, ldb = 48, ldc = 48>, graph.range = array<i64: 3>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{packing = none, swaps = true>: of the transposed product b lies transposed, expected packing transpose or registers}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none, swaps = true>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{b is packed, expected no swaps}}
  func.func nested @product0(index, index, memref<6xf32>, memref<48xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = transpose, swaps = true>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4, packed = true>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512bf16", "+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{blocks of tiles are not turned, expected no swaps}}
  func.func nested @product0(index, index, memref<1024xi16>, memref<1024xi16>, memref<1024xi16>) attributes
      {exec.blocking = #exec.blocking<rows = 32, vectors = 2, band = 1, packing = transpose, swaps = true>,
       exec.product = #exec.product<m = 32, n = 32, k = 32, operands = bf16, result = bf16, lda = 32, ldb = 32, ldc = 32>, graph.range = array<i64: 2>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{lines of b are read for one block of at most 15 rows, got 2 of 1}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 1, vectors = 64, band = 1, packing = lines>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 2>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{lines of b are read for one block of at most 7 rows, got 1 of 8}}
  func.func nested @product0(index, index, memref<24xf32>, memref<12xf32>, memref<32xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 8, vectors = 64, band = 1, packing = lines>,
       exec.product = #exec.product<m = 8, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+fma"]>
module @kernels attributes {dsopt.target = #target} {
  // expected-error @below {{lines of the result are not asked for beside those of b, got result_ahead = 1}}
  func.func nested @product0(index, index, memref<6xf32>, memref<12xf32>, memref<8xf32>) attributes
      {exec.blocking = #exec.blocking<rows = 2, vectors = 64, band = 1, packing = lines, result_ahead = 1>,
       exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>, graph.range = array<i64: 1>}
}
