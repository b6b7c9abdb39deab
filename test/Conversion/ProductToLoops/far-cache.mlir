// RUN: dsopt-opt %s -pass-pipeline="builtin.module(func.func(product-to-loops,canonicalize,cse))" | FileCheck %s

// A last cache that is far: the lines of a result are asked for in a block's first steps, one in each, then lines of
// the next panel and of the next rows; and lines of a copy that the first cache has no room for.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "cooperlake", threads = 2, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // 768 columns of 256 elements are 48 KiB a panel; all rows of a fit the second cache.
  // CHECK-LABEL: func.func nested @far_result
  // CHECK: %[[COPY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<12288xf32>
  // CHECK-NOT: memref.prefetch
  // CHECK: :24 = scf.for %[[STEP:[a-z0-9]+]] = %c0{{.*}} to %c24
  // CHECK-DAG: arith.divui %[[STEP]], %c3
  // CHECK-DAG: arith.remui %[[STEP]], %c3
  // CHECK: memref.prefetch %arg4[{{.*}}], read, locality<3>
  // CHECK-NOT: memref.prefetch %arg4
  // CHECK: :24 = scf.for %{{.*}} = %c24
  // CHECK: } else {
  // CHECK: memref.prefetch %[[COPY]][{{.*}}], read, locality<3>
  // CHECK: memref.prefetch %arg4
  // CHECK-NOT: memref.prefetch %arg2
  // CHECK: return
  func.func nested @far_result(index, index, memref<262144xf32>, memref<196608xf32>, memref<786432xf32>) attributes
      {exec.product = #exec.product<m = 1024, n = 768, k = 256, operands = f32, result = f32, lda = 256, ldb = 768, ldc = 768>, graph.range = array<i64: 6144>}

  // Lines that blocks share are asked for too; the first cache has room for 30 KiB.
  // CHECK-LABEL: func.func nested @far_odd
  // CHECK: %[[COPY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<7680xf32>
  // CHECK: memref.prefetch %arg4[{{.*}}], read, locality<3>
  // CHECK-NOT: memref.prefetch %[[COPY]]
  // CHECK: return
  func.func nested @far_odd(index, index, memref<163840xf32>, memref<124320xf32>, memref<795648xf32>) attributes
      {exec.product = #exec.product<m = 1024, n = 777, k = 160, operands = f32, result = f32, lda = 160, ldb = 777, ldc = 777>, graph.range = array<i64: 6272>}

  // Of a run of more than the second cache's 1 MiB the next block's rows are asked for, however many panels read it.
  // CHECK-LABEL: func.func nested @far_rows
  // CHECK: memref.prefetch %arg2[{{.*}}], read, locality<2>
  func.func nested @far_rows(index, index, memref<528384xf32>, memref<393216xf32>, memref<792576xf32>) attributes
      {exec.product = #exec.product<m = 1032, n = 768, k = 512, operands = f32, result = f32, lda = 512, ldb = 768, ldc = 768>, graph.range = array<i64: 6192>}

  // CHECK-LABEL: func.func nested @far_in_second
  // CHECK-NOT: memref.prefetch %arg2
  // CHECK: return
  func.func nested @far_in_second(index, index, memref<262144xf32>, memref<393216xf32>, memref<393216xf32>) attributes
      {exec.product = #exec.product<m = 512, n = 768, k = 512, operands = f32, result = f32, lda = 512, ldb = 768, ldc = 768>, graph.range = array<i64: 3072>}

  // Bands of half the second cache, 256 rows at the least.
  // CHECK-LABEL: func.func nested @far_bands
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1
  // CHECK: arith.divui %{{.*}}, %c32 : index
  func.func nested @far_bands(index, index, memref<1048576xf32>, memref<393216xf32>, memref<1572864xf32>) attributes
      {exec.product = #exec.product<m = 2048, n = 768, k = 512, operands = f32, result = f32, lda = 512, ldb = 768, ldc = 768>, graph.range = array<i64: 12288>}

  // To turn b costs more: 512.
  // CHECK-LABEL: func.func nested @far_bands_turned
  // CHECK: arith.divui %{{.*}}, %c64 : index
  func.func nested @far_bands_turned(index, index, memref<1048576xf32>, memref<393216xf32>, memref<1572864xf32>) attributes
      {exec.product = #exec.product<m = 2048, n = 768, k = 512, operands = f32, result = f32, lda = 512, ldb = 512, ldc = 768, transpose_b = true>, graph.range = array<i64: 12288>}

  // Runs of more than 2048 bytes have one.
  // CHECK-LABEL: func.func nested @far_long_runs
  // CHECK: arith.divui %{{.*}}, %c256 : index
  func.func nested @far_long_runs(index, index, memref<1064960xf32>, memref<399360xf32>, memref<1572864xf32>) attributes
      {exec.product = #exec.product<m = 2048, n = 768, k = 520, operands = f32, result = f32, lda = 520, ldb = 768, ldc = 768>, graph.range = array<i64: 12288>}

  // Few rows by many vectors, unless a lies transposed.
  // CHECK-LABEL: func.func nested @far_short
  // CHECK: :25 = scf.for
  func.func nested @far_short(index, index, memref<524288xf32>, memref<20480xf32>, memref<655360xf32>) attributes
      {exec.product = #exec.product<m = 4096, n = 160, k = 128, operands = f32, result = f32, lda = 128, ldb = 160, ldc = 160>, graph.range = array<i64: 8200>}

  // CHECK-LABEL: func.func nested @far_short_columns
  // CHECK: :24 = scf.for
  func.func nested @far_short_columns(index, index, memref<524288xf32>, memref<18432xf32>, memref<589824xf32>) attributes
      {exec.product = #exec.product<m = 4096, n = 144, k = 128, operands = f32, result = f32, lda = 4096, ldb = 144, ldc = 144, transpose_a = true>, graph.range = array<i64: 4608>}

  // Of an a that lies transposed, where it is not copied, the line that is six steps on.
  // CHECK-LABEL: func.func nested @far_columns
  // CHECK: %[[SOON:.*]] = arith.addi %{{.*}}, %c6
  // CHECK: %[[LINE:.*]] = arith.muli %[[SOON]], %c512
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[LINE]]
  // CHECK: memref.prefetch %arg2[%[[AT]]], read, locality<3>
  // CHECK: return
  func.func nested @far_columns(index, index, memref<32768xf32>, memref<6144xf32>, memref<49152xf32>) attributes
      {exec.product = #exec.product<m = 512, n = 96, k = 64, operands = f32, result = f32, lda = 512, ldb = 96, ldc = 96, transpose_a = true>, graph.range = array<i64: 384>}

  // CHECK-LABEL: func.func nested @far_copied_columns
  // CHECK-NOT: memref.prefetch %arg2[{{.*}}], read, locality<3>
  // CHECK: return
  func.func nested @far_copied_columns(index, index, memref<131072xf32>, memref<884736xf32>, memref<27648xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 432, k = 2048, operands = f32, result = f32, lda = 64, ldb = 432, ldc = 432, transpose_a = true>, graph.range = array<i64: 216>}

  // Operands from memory do not change places where it gains no lane.
  // CHECK-LABEL: func.func nested @far_unswapped
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK: :24 = scf.for
  func.func nested @far_unswapped(index, index, memref<524288xf32>, memref<4194304xf32>, memref<32768xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 512, k = 8192, operands = f32, result = f32, lda = 64, ldb = 512, ldc = 512, transpose_a = true>, graph.range = array<i64: 256>}
}
