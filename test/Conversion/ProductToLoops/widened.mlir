// RUN: dsopt-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(product-to-loops,canonicalize,cse))" | FileCheck %s

// Operands that the processor does not multiply are extended as they are copied, and copies are of fp32.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 1, vector_bits = 512, features = ["+avx512f", "+f16c", "+fma"]>
module @widened attributes {dsopt.target = #target} {
  // Rows of a are copied as they lie, 64 bytes farther apart; b by the first block; results are rounded.
  // CHECK-LABEL: func.func nested @rows
  // CHECK-DAG: %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1280xf32>
  // CHECK-DAG: %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2800xf32>
  // CHECK: %[[BITS:.*]] = vector.load %arg2[{{.*}}] : memref<2000xi16>, vector<16xi16>
  // CHECK: %[[FLOATS:.*]] = vector.bitcast %[[BITS]] : vector<16xi16> to vector<16xbf16>
  // CHECK: %[[WIDE:.*]] = arith.extf %[[FLOATS]] : vector<16xbf16> to vector<16xf32>
  // CHECK: vector.store %[[WIDE]], %[[A]]
  // CHECK: vector.maskedload %arg2
  // CHECK-NOT: %arg2[
  // CHECK: vector.load %arg3[{{.*}}] : memref<1280xi16>, vector<16xi16>
  // CHECK: vector.store %{{.*}}, %[[B]]
  // CHECK: memref.load %[[A]]
  // CHECK: vector.fma
  // CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
  func.func nested @rows(index, index, memref<2000xi16>, memref<1280xi16>, memref<1600xi16>) attributes
      {exec.product = #exec.product<m = 50, n = 32, k = 40, operands = bf16, result = bf16, lda = 40, ldb = 32, ldc = 32>, graph.range = array<i64: 10>}

  // Columns are copied as rows of a block, and turned squares are of fp32. f16 is another type of the same.
  // CHECK-LABEL: func.func nested @turned
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<{{.*}}xf32>
  // CHECK: arith.extf %{{.*}} : vector<32xf16> to vector<32xf32>
  // CHECK: vector.load %arg3[{{.*}}] : memref<1280xi16>, vector<16xi16>
  // CHECK: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
  // CHECK: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
  // CHECK-NOT: arith.truncf
  // CHECK: return
  func.func nested @turned(index, index, memref<2560xi16>, memref<1280xi16>, memref<2048xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 32, k = 40, operands = f16, result = f32, lda = 64, ldb = 40, ldc = 32, transpose_a = true, transpose_b = true>, graph.range = array<i64: 16>}

  // What is packed is not extended before it is read.
  // CHECK-LABEL: func.func nested @packs
  // CHECK-NOT: arith.extf
  // CHECK: vector.shuffle {{.*}} : vector<16xi16>, vector<16xi16>
  // CHECK: vector.store %{{.*}}, %arg3[{{.*}}] : memref<15680xi16>, vector<16xi16>
  // CHECK-LABEL: func.func nested @packed
  // CHECK: arith.extf
  // CHECK: vector.load %arg3[{{.*}}] : memref<15680xi16>, vector<16xi16>
  // CHECK: arith.extf
  // CHECK: vector.fma
  func.func nested @packs(index, index, memref<15435xi16>, memref<15680xi16>) attributes
      {exec.packs, exec.product = #exec.product<m = 4, n = 315, k = 49, operands = bf16, result = bf16, lda = 49, ldb = 49, ldc = 315, transpose_b = true, packed = true>, graph.range = array<i64: 20>}
  func.func nested @packed(index, index, memref<196xi16>, memref<15680xi16>, memref<1260xi16>) attributes
      {exec.product = #exec.product<m = 4, n = 315, k = 49, operands = bf16, result = bf16, lda = 49, ldb = 49, ldc = 315, transpose_b = true, packed = true>, graph.range = array<i64: 20>}
}

// -----

// Where there is AVX-512 BF16 pairs are multiplied, but by Intel's processors that have AMX and do not show it.
#pairs = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 1, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module @pairs attributes {dsopt.target = #pairs} {
  // CHECK-LABEL: func.func nested @pairs
  // CHECK-NOT: arith.extf
  // CHECK: llvm.x86.avx512bf16.dpbf16ps.512
  func.func nested @pairs(index, index, memref<2000xi16>, memref<1280xi16>, memref<1600xf32>) attributes
      {exec.product = #exec.product<m = 50, n = 32, k = 40, operands = bf16, result = f32, lda = 40, ldb = 32, ldc = 32>, graph.range = array<i64: 10>}
}

// -----

#hidden = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module @hidden attributes {dsopt.target = #hidden} {
  // CHECK-LABEL: func.func nested @hidden
  // CHECK: arith.extf
  // CHECK-NOT: dpbf16ps
  func.func nested @hidden(index, index, memref<2000xi16>, memref<1280xi16>, memref<1600xf32>) attributes
      {exec.product = #exec.product<m = 50, n = 32, k = 40, operands = bf16, result = f32, lda = 40, ldb = 32, ldc = 32>, graph.range = array<i64: 10>}
}
