// RUN: dsopt-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(product-to-loops,canonicalize,cse))" | FileCheck %s

// Twelve rows of two blocks, 40 columns of three vectors, of which the last has eight: one panel, which is all of b
// and read where it lies.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @small
  // CHECK-SAME: (%[[LOW:.*]]: index, %[[HIGH:.*]]: index, %[[A:.*]]: memref<36xf32> {llvm.noalias}, %[[B:.*]]: memref<120xf32> {llvm.noalias}, %[[C:.*]]: memref<480xf32> {llvm.noalias})
  // CHECK-DAG: %[[MASK:.*]] = arith.constant dense<[true, true, true, true, true, true, true, true, false
  // CHECK-NOT: alloca
  // CHECK-NOT: memref.prefetch
  // The blocks of the range, each six rows by three vectors.
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: %[[SUMS:.*]]:18 = scf.for %[[K:.*]] = %{{.*}} iter_args(
  // CHECK: vector.load %[[B]][{{.*}}] : memref<120xf32>, vector<16xf32>
  // CHECK: vector.load %[[B]]
  // CHECK: vector.maskedload %[[B]][{{.*}}], %[[MASK]]
  // One broadcast at a time.
  // CHECK: %[[X:.*]] = memref.load %[[A]]
  // CHECK-NEXT: %[[F:.*]] = vector.broadcast %[[X]] : f32 to vector<16xf32>
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-COUNT-15: vector.fma
  // CHECK: scf.yield
  // CHECK-NEXT: llvm.loop_annotation
  func.func nested @small(index, index, memref<36xf32>, memref<120xf32>, memref<480xf32>) attributes
      {exec.product = #exec.product<m = 12, n = 40, k = 3, operands = f32, result = f32, lda = 3, ldb = 40, ldc = 40>, graph.range = array<i64: 6>}
}

// -----

// A result that no cache holds: lines of the block of rows after this one are asked for, since 32 elements of the
// contraction take less than a line does.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @short
  // CHECK-SAME: %[[C:[a-z0-9]*]]: memref<786432xf32>
  // The rows' first element, three rows of 48 further on: of a contraction that is short few are stored at a time.
  // CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c3
  // CHECK: %[[AT:.*]] = arith.muli %[[NEXT]], %c48
  // CHECK: memref.prefetch %[[C]][{{.*}}], read, locality<3>
  // CHECK-COUNT-8: memref.prefetch %[[C]]
  // CHECK-NOT: memref.prefetch %[[C]]
  // CHECK: :9 = scf.for
  func.func nested @short(index, index, memref<524288xf32>, memref<1536xf32>, memref<786432xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 48, k = 32, operands = f32, result = f32, lda = 32, ldb = 48, ldc = 48>, graph.range = array<i64: 16386>}

  // Five vectors side by side.
  // CHECK-LABEL: func.func nested @wide
  // CHECK: :15 = scf.for
  func.func nested @wide(index, index, memref<524288xf32>, memref<5120xf32>, memref<2621440xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 160, k = 32, operands = f32, result = f32, lda = 32, ldb = 160, ldc = 160>, graph.range = array<i64: 54620>}

  // Rows of a that lie as columns, of which four are one copy.
  // CHECK-LABEL: func.func nested @turned
  // CHECK: :16 = scf.for
  func.func nested @turned(index, index, memref<524288xf32>, memref<2048xf32>, memref<1048576xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 64, k = 32, operands = f32, result = f32, lda = 16384, ldb = 64, ldc = 64, transpose_a = true>, graph.range = array<i64: 16384>}

  // 16 more elements of the contraction than a short one has.
  // CHECK-LABEL: func.func nested @long
  // CHECK: :24 = scf.for
  func.func nested @long(index, index, memref<4456448xf32>, memref<26112xf32>, memref<1572864xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 96, k = 272, operands = f32, result = f32, lda = 272, ldb = 96, ldc = 96>, graph.range = array<i64: 12288>}
}

// -----

// Whole vectors: few rows read b from the first cache only, and a band of a is what half the second holds.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 2, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module attributes {dsopt.target = #target} {
  // Five vectors by five rows, three panels, four thousand rows a band.
  // CHECK-LABEL: func.func nested @whole_short
  // CHECK: divui %{{.*}}, %c819 : index
  // CHECK: :25 = scf.for
  func.func nested @whole_short(index, index, memref<1048320xf32>, memref<7680xf32>, memref<7862400xf32>) attributes
      {exec.product = #exec.product<m = 32760, n = 240, k = 32, operands = f32, result = f32, lda = 32, ldb = 240, ldc = 240>, graph.range = array<i64: 98280>}

  // 64 columns of 256 elements are 64 KiB.
  // CHECK-LABEL: func.func nested @whole_far
  // CHECK: :24 = scf.for
  func.func nested @whole_far(index, index, memref<4194304xf32>, memref<24576xf32>, memref<1572864xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 96, k = 256, operands = f32, result = f32, lda = 256, ldb = 96, ldc = 96>, graph.range = array<i64: 12288>}

  // Eight rows by two vectors.
  // CHECK-LABEL: func.func nested @whole_turned
  // CHECK: :16 = scf.for
  func.func nested @whole_turned(index, index, memref<524288xf32>, memref<2048xf32>, memref<1048576xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 64, k = 32, operands = f32, result = f32, lda = 16384, ldb = 64, ldc = 64, transpose_a = true>, graph.range = array<i64: 8192>}

  // Not four vectors by six rows, as halves would be.
  // CHECK-LABEL: func.func nested @whole_narrow
  // CHECK: :24 = scf.for
  func.func nested @whole_narrow(index, index, memref<524288xi16>, memref<1048576xi16>, memref<2097152xi16>) attributes
      {exec.product = #exec.product<m = 1024, n = 2048, k = 512, operands = bf16, result = bf16, lda = 512, ldb = 2048, ldc = 2048>, graph.range = array<i64: 16384>}
}

// -----

// Results of 16 bits, of which no line is left when the panel beside it is stored: a row of a block is two of them.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver4", threads = 2, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @narrow
  // CHECK: :24 = scf.for
  // CHECK-COUNT-4: vector.store %{{.*}}, %arg4[{{.*}}] : memref<4194304xi16>, vector<16xi16>
  func.func nested @narrow(index, index, memref<4194304xi16>, memref<1048576xi16>, memref<4194304xi16>) attributes
      {exec.product = #exec.product<m = 4096, n = 1024, k = 1024, operands = bf16, result = bf16, lda = 1024, ldb = 1024, ldc = 1024>, graph.range = array<i64: 43712>}

  // As short as 1024 bytes of a are: three lines of a row.
  // CHECK-LABEL: func.func nested @short_narrow
  // CHECK: :18 = scf.for
  func.func nested @short_narrow(index, index, memref<2097152xi16>, memref<524288xi16>, memref<4194304xi16>) attributes
      {exec.product = #exec.product<m = 4096, n = 1024, k = 512, operands = bf16, result = bf16, lda = 512, ldb = 1024, ldc = 1024>, graph.range = array<i64: 87424>}
}

// -----

// AMX: in 16 bits two tiles of rows by two of columns, or one by six; the last tile of rows ends with the block. Other types have none.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 2, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512f", "+avx512bf16", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @tiles
  // CHECK: :4 = scf.for {{.*}} -> (!amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>)
  // CHECK-COUNT-2: amx.tile_load %arg2[{{.*}}], %c64{{.*}} : memref<1600xi16> into !amx.tile<16x32xbf16>
  func.func nested @tiles(index, index, memref<1600xi16>, memref<8192xi16>, memref<3200xi16>) attributes
      {exec.product = #exec.product<m = 25, n = 128, k = 64, operands = bf16, result = bf16, lda = 64, ldb = 128, ldc = 128>, graph.range = array<i64: 8>}

  // CHECK-LABEL: func.func nested @few_rows
  // CHECK: :6 = scf.for
  // CHECK: amx.tile_mulf {{.*}} : !amx.tile<5x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<5x16xf32>
  func.func nested @few_rows(index, index, memref<320xi16>, memref<6144xi16>, memref<480xi16>) attributes
      {exec.product = #exec.product<m = 5, n = 96, k = 64, operands = bf16, result = bf16, lda = 64, ldb = 96, ldc = 96>, graph.range = array<i64: 6>}

  // However tall: a band is what the second cache holds.
  // CHECK-LABEL: func.func nested @tall
  // CHECK: amx.tile_mulf
  func.func nested @tall(index, index, memref<205520896xi16>, memref<32768xi16>, memref<1605632xi16>) attributes
      {exec.product = #exec.product<m = 100352, n = 16, k = 2048, operands = bf16, result = bf16, lda = 100352, ldb = 16, ldc = 16, transpose_a = true>, graph.range = array<i64: 3136>}

  // CHECK-LABEL: func.func nested @wide
  // CHECK-NOT: amx
  // CHECK: return
  func.func nested @wide(index, index, memref<1600xf32>, memref<8192xf32>, memref<3200xf32>) attributes
      {exec.product = #exec.product<m = 25, n = 128, k = 64, operands = f32, result = f32, lda = 64, ldb = 128, ldc = 128>, graph.range = array<i64: 32>}
}

// -----

// What of a comes from memory, and how a transposed one is copied.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 2, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
module attributes {dsopt.target = #target} {
  // Few panels of columns: a block asks for the next one's rows, one line in each of as many steps as there are lines.
  // CHECK-LABEL: func.func nested @streamed
  // CHECK: :24 = scf.for %[[STEP:[a-z0-9]+]] = %c0{{.*}} to %c288
  // CHECK: arith.remui %[[STEP]], %c8
  // CHECK: memref.prefetch %arg2[{{.*}}], read, locality<2>
  // CHECK: vector.fma
  // CHECK: :24 = scf.for %{{.*}} = %c288{{.*}} to %c576
  // CHECK-NOT: memref.prefetch
  // CHECK: scf.yield
  func.func nested @streamed(index, index, memref<3612672xf32>, memref<27648xf32>, memref<301056xf32>) attributes
      {exec.product = #exec.product<m = 6272, n = 48, k = 576, operands = f32, result = f32, lda = 576, ldb = 48, ldc = 48>, graph.range = array<i64: 2352>}

  // Of the next panel's 256 lines of b, each in four of a cache, each of twelve blocks asks for 86 in its first steps.
  // CHECK-LABEL: func.func nested @asked_once
  // CHECK: :24 = scf.for %[[STEP:[a-z0-9]+]] = %c0{{.*}} to %c86
  // CHECK: arith.divui %{{.*}}, %c4
  // CHECK: memref.prefetch %arg3[{{.*}}], read, locality<2>
  // CHECK: :24 = scf.for %{{.*}} = %c86{{.*}} to %c256
  func.func nested @asked_once(index, index, memref<24576xf32>, memref<49152xf32>, memref<18432xf32>) attributes
      {exec.product = #exec.product<m = 96, n = 192, k = 256, operands = f32, result = f32, lda = 256, ldb = 192, ldc = 192>, graph.range = array<i64: 144>}

  // Here a block's rows lie side by side.
  // CHECK-LABEL: func.func nested @streamed_columns
  // CHECK: :24 = scf.for
  // CHECK: memref.prefetch %arg2[{{.*}}], read, locality<2>
  // CHECK: vector.fma
  func.func nested @streamed_columns(index, index, memref<4194304xf32>, memref<1048576xf32>, memref<1048576xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 64, k = 256, operands = f32, result = f32, lda = 256, ldb = 64, ldc = 64, transpose_a = true, batch = [64],
                                    strides_a = [65536], strides_b = [16384], strides_c = [16384]>, graph.range = array<i64: 11008>}

  // Of many panels the first brings a to the last cache.
  // CHECK-LABEL: func.func nested @kept
  // CHECK-NOT: memref.prefetch %arg2
  // CHECK: return
  func.func nested @kept(index, index, memref<3612672xf32>, memref<1179648xf32>, memref<12845056xf32>) attributes
      {exec.product = #exec.product<m = 6272, n = 2048, k = 576, operands = f32, result = f32, lda = 576, ldb = 2048, ldc = 2048>, graph.range = array<i64: 100352>}

  // Few rows of several runs are copied for nine panels: 8 blocks of 1024 by 8, between which 64 bytes lie.
  // CHECK-LABEL: func.func nested @long_columns
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<65664xf32>
  func.func nested @long_columns(index, index, memref<131072xf32>, memref<884736xf32>, memref<27648xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 432, k = 2048, operands = f32, result = f32, lda = 64, ldb = 432, ldc = 432, transpose_a = true>, graph.range = array<i64: 216>}

  // For eight they are read where they lie.
  // CHECK-LABEL: func.func nested @eight_panels
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @eight_panels(index, index, memref<131072xf32>, memref<786432xf32>, memref<24576xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 384, k = 2048, operands = f32, result = f32, lda = 64, ldb = 384, ldc = 384, transpose_a = true>, graph.range = array<i64: 192>}

  // As are those of one run, and more than a second cache holds.
  // CHECK-LABEL: func.func nested @one_run
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @one_run(index, index, memref<65536xf32>, memref<442368xf32>, memref<27648xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 432, k = 1024, operands = f32, result = f32, lda = 64, ldb = 432, ldc = 432, transpose_a = true>, graph.range = array<i64: 216>}

  // CHECK-LABEL: func.func nested @many_rows
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @many_rows(index, index, memref<540672xf32>, memref<884736xf32>, memref<114048xf32>) attributes
      {exec.product = #exec.product<m = 264, n = 432, k = 2048, operands = f32, result = f32, lda = 264, ldb = 432, ldc = 432, transpose_a = true>, graph.range = array<i64: 891>}

  // Lines that share sets of the second cache are copied from three panels on, of at most 2 MiB from five.
  // CHECK-LABEL: func.func nested @three_panels
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<262656xf32>
  func.func nested @three_panels(index, index, memref<2097152xf32>, memref<147456xf32>, memref<294912xf32>) attributes
      {exec.product = #exec.product<m = 2048, n = 144, k = 1024, operands = f32, result = f32, lda = 2048, ldb = 144, ldc = 144, transpose_a = true>, graph.range = array<i64: 2304>}

  // CHECK-LABEL: func.func nested @four_panels
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @four_panels(index, index, memref<524288xf32>, memref<196608xf32>, memref<98304xf32>) attributes
      {exec.product = #exec.product<m = 512, n = 192, k = 1024, operands = f32, result = f32, lda = 512, ldb = 192, ldc = 192, transpose_a = true>, graph.range = array<i64: 768>}

  // CHECK-LABEL: func.func nested @five_panels
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xf32>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<131328xf32>
  func.func nested @five_panels(index, index, memref<524288xf32>, memref<245760xf32>, memref<122880xf32>) attributes
      {exec.product = #exec.product<m = 512, n = 240, k = 1024, operands = f32, result = f32, lda = 512, ldb = 240, ldc = 240, transpose_a = true>, graph.range = array<i64: 960>}

  // Eight rows a block, four of which a cache line has; the copy of 128 rows in each of four bands.
  // CHECK-LABEL: func.func nested @lines
  // CHECK: scf.for {{.*}} step %c4
  // CHECK: vector.load %arg2[{{.*}}] : memref<32768xi16>, vector<32xi16>
  // CHECK-COUNT-4: vector.store {{.*}} : memref<{{.*}}xi16>, vector<16xi16>
  func.func nested @lines(index, index, memref<32768xi16>, memref<2048xi16>, memref<16384xi16>) attributes
      {exec.product = #exec.product<m = 512, n = 32, k = 64, operands = bf16, result = bf16, lda = 512, ldb = 32, ldc = 32, transpose_a = true>, graph.range = array<i64: 128>}

  // Six rows would be copied by themselves: not six by four vectors, but eight by two.
  // CHECK-LABEL: func.func nested @four_vectors
  // CHECK: vector.load %arg2[{{.*}}] : memref<65536xi16>, vector<32xi16>
  // CHECK: :16 = scf.for
  func.func nested @four_vectors(index, index, memref<65536xi16>, memref<32768xi16>, memref<8192xi16>) attributes
      {exec.product = #exec.product<m = 128, n = 64, k = 512, operands = bf16, result = bf16, lda = 128, ldb = 64, ldc = 64, transpose_a = true>, graph.range = array<i64: 64>}

  // The last of them have seven rows.
  // CHECK-LABEL: func.func nested @odd_lines
  // CHECK: vector.load %arg2[{{.*}}] : memref<32384xi16>, vector<32xi16>
  // CHECK: vector.maskedload %arg2[{{.*}}], %{{.*}}, %{{.*}} : memref<32384xi16>, vector<8xi1>, vector<8xi16>
  func.func nested @odd_lines(index, index, memref<32384xi16>, memref<2048xi16>, memref<16192xi16>) attributes
      {exec.product = #exec.product<m = 506, n = 32, k = 64, operands = bf16, result = bf16, lda = 506, ldb = 32, ldc = 32, transpose_a = true>, graph.range = array<i64: 128>}
}

// -----

// With sixteen registers four rows by three vectors; a transposed a is copied where a run has more lines than the
// first cache, or there are many panels.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 2, vector_bits = 256, features = ["+avx2", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @rows
  // CHECK-NOT: memref.alloca
  // CHECK: :12 = scf.for
  func.func nested @rows(index, index, memref<32768xf32>, memref<6144xf32>, memref<3072xf32>) attributes
      {exec.product = #exec.product<m = 128, n = 24, k = 256, operands = f32, result = f32, lda = 256, ldb = 24, ldc = 24>, graph.range = array<i64: 96>}

  // One row takes six vectors, two rows four.
  // CHECK-LABEL: func.func nested @one_row
  // CHECK: :6 = scf.for
  func.func nested @one_row(index, index, memref<256xf32>, memref<12288xf32>, memref<48xf32>) attributes
      {exec.product = #exec.product<m = 1, n = 48, k = 256, operands = f32, result = f32, lda = 256, ldb = 48, ldc = 48>, graph.range = array<i64: 6>}

  // Two blocks share a copy of a b that the first cache does not hold.
  // CHECK-LABEL: func.func nested @two_blocks
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<6144xf32>
  func.func nested @two_blocks(index, index, memref<2048xf32>, memref<24576xf32>, memref<768xf32>) attributes
      {exec.product = #exec.product<m = 8, n = 96, k = 256, operands = f32, result = f32, lda = 256, ldb = 96, ldc = 96>, graph.range = array<i64: 24>}

  // CHECK-LABEL: func.func nested @copied_columns
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<24576xf32>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<131584xf32>
  func.func nested @copied_columns(index, index, memref<131072xf32>, memref<131072xf32>, memref<16384xf32>) attributes
      {exec.product = #exec.product<m = 128, n = 128, k = 1024, operands = f32, result = f32, lda = 128, ldb = 128, ldc = 128, transpose_a = true>, graph.range = array<i64: 512>}

  // CHECK-LABEL: func.func nested @kept_columns
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<6144xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @kept_columns(index, index, memref<32768xf32>, memref<32768xf32>, memref<16384xf32>) attributes
      {exec.product = #exec.product<m = 128, n = 128, k = 256, operands = f32, result = f32, lda = 128, ldb = 128, ldc = 128, transpose_a = true>, graph.range = array<i64: 512>}
}

// -----

// a and b in each other's places.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 2, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // The result's rows are the lanes: a is read as vectors, and five columns' elements of b are factors.
  // CHECK-LABEL: func.func nested @swapped
  // CHECK-SAME: %[[A:[a-z0-9]*]]: memref<12000xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<1500xf32> {llvm.noalias}, %[[C:[a-z0-9]*]]: memref<200xf32>
  // CHECK-DAG: %[[FIVE:.*]] = arith.constant dense<[true, true, true, true, true, false
  // CHECK-DAG: %[[EIGHT:.*]] = arith.constant dense<[true, true, true, true, true, true, true, true, false
  // CHECK: %[[SUMS:.*]]:15 = scf.for
  // CHECK: vector.load %[[A]]
  // CHECK: vector.load %[[A]]
  // CHECK: vector.maskedload %[[A]][{{.*}}], %[[EIGHT]]
  // CHECK: memref.load %[[B]]
  // CHECK-NEXT: vector.broadcast
  // CHECK: scf.yield
  // A block of five by three vectors is forty lines of five when it is stored.
  // CHECK: vector.shuffle %[[SUMS]]#0, %[[SUMS]]#3
  // CHECK-COUNT-40: vector.maskedstore %[[C]][{{.*}}], %[[FIVE]]
  // CHECK-NOT: store
  // CHECK: return
  func.func nested @swapped(index, index, memref<12000xf32>, memref<1500xf32>, memref<200xf32>) attributes
      {exec.product = #exec.product<m = 40, n = 5, k = 300, operands = f32, result = f32, lda = 40, ldb = 5, ldc = 5, transpose_a = true>, graph.range = array<i64: 3>}

  // Columns that fill their lanes better stay the vectors,
  // CHECK-LABEL: func.func nested @columns
  // CHECK-SAME: memref<12000xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<4800xf32>
  // CHECK: vector.load %[[B]]
  func.func nested @columns(index, index, memref<12000xf32>, memref<4800xf32>, memref<640xf32>) attributes
      {exec.product = #exec.product<m = 40, n = 16, k = 300, operands = f32, result = f32, lda = 40, ldb = 16, ldc = 16, transpose_a = true>, graph.range = array<i64: 3>}

  // and those of which five of a hundred lanes are empty,
  // CHECK-LABEL: func.func nested @nearly
  // CHECK-SAME: memref<1048576xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<233472xf32>
  // CHECK-NOT: memref.load %[[B]]
  // CHECK: vector.load %[[B]]
  func.func nested @nearly(index, index, memref<1048576xf32>, memref<233472xf32>, memref<233472xf32>) attributes
      {exec.product = #exec.product<m = 1024, n = 228, k = 1024, operands = f32, result = f32, lda = 1024, ldb = 228, ldc = 228, transpose_a = true>, graph.range = array<i64: 1920>}

  // not six.
  // CHECK-LABEL: func.func nested @more
  // CHECK-SAME: memref<1048576xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<231424xf32>
  // CHECK: memref.load %[[B]]
  func.func nested @more(index, index, memref<1048576xf32>, memref<231424xf32>, memref<231424xf32>) attributes
      {exec.product = #exec.product<m = 1024, n = 226, k = 1024, operands = f32, result = f32, lda = 1024, ldb = 226, ldc = 226, transpose_a = true>, graph.range = array<i64: 1856>}

  // Of so few rows b may be packed.
  // CHECK-LABEL: func.func nested @few
  // CHECK-SAME: memref<16384xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<4096xf32>
  // CHECK: vector.maskedload %[[B]]
  func.func nested @few(index, index, memref<16384xf32>, memref<4096xf32>, memref<64xf32>) attributes
      {exec.product = #exec.product<m = 16, n = 4, k = 1024, operands = f32, result = f32, lda = 16, ldb = 4, ldc = 4, transpose_a = true>, graph.range = array<i64: 1>}

  // An a that lies as rows is turned: in registers where few columns are to be multiplied. At the end of a panel's rows
  // it is the next one's first elements that are asked for.
  // CHECK-LABEL: func.func nested @turned
  // CHECK-SAME: %[[A:[a-z0-9]*]]: memref<262144xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: %[[AHEAD:.*]] = arith.select %{{.*}}, %c15488, %c128
  // CHECK: arith.addi %{{.*}}, %[[AHEAD]]
  // CHECK: memref.prefetch %[[A]]
  // CHECK: vector.load %[[A]]
  func.func nested @turned(index, index, memref<262144xf32>, memref<8192xf32>, memref<2048xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 8, k = 1024, operands = f32, result = f32, lda = 1024, ldb = 1024, ldc = 8, transpose_b = true>, graph.range = array<i64: 16>}

  // More are copied, which lanes have to pay for: of these columns' a quarter are empty,
  // CHECK-LABEL: func.func nested @copied
  // CHECK-SAME: %[[A:[a-z0-9]*]]: memref<262144xf32>
  // CHECK: vector.load %[[A]]
  func.func nested @copied(index, index, memref<262144xf32>, memref<36864xf32>, memref<9216xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 36, k = 1024, operands = f32, result = f32, lda = 1024, ldb = 1024, ldc = 36, transpose_b = true>, graph.range = array<i64: 80>}

  // of these one in nine.
  // CHECK-LABEL: func.func nested @uncopied
  // CHECK-SAME: memref<262144xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<102400xf32>
  // CHECK: vector.load %[[B]]
  func.func nested @uncopied(index, index, memref<262144xf32>, memref<102400xf32>, memref<25600xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 100, k = 1024, operands = f32, result = f32, lda = 1024, ldb = 100, ldc = 100>, graph.range = array<i64: 224>}

  // To turn a block takes as long as a short contraction.
  // CHECK-LABEL: func.func nested @short
  // CHECK-SAME: memref<6144xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<336xf32>
  // CHECK: vector.maskedload %[[B]]
  func.func nested @short(index, index, memref<6144xf32>, memref<336xf32>, memref<3584xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 14, k = 24, operands = f32, result = f32, lda = 256, ldb = 14, ldc = 14, transpose_a = true>, graph.range = array<i64: 16>}

  // Both come from memory, and 64 rows are a part of each line.
  // CHECK-LABEL: func.func nested @far
  // CHECK-SAME: memref<524288xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<4718592xf32>
  // CHECK: memref.load %[[B]]
  func.func nested @far(index, index, memref<524288xf32>, memref<4718592xf32>, memref<36864xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 576, k = 8192, operands = f32, result = f32, lda = 64, ldb = 576, ldc = 576, transpose_a = true>, graph.range = array<i64: 384>}

  // A last cache holds half of it; in 16 bits rows that lie as columns are copied at once.
  // CHECK-LABEL: func.func nested @near
  // CHECK-SAME: memref<262144xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<2359296xf32>
  // CHECK-NOT: memref.load %[[B]]
  // CHECK: vector.load %[[B]]
  func.func nested @near(index, index, memref<262144xf32>, memref<2359296xf32>, memref<36864xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 576, k = 4096, operands = f32, result = f32, lda = 64, ldb = 576, ldc = 576, transpose_a = true>, graph.range = array<i64: 288>}

  // In 16 bits they are copied for each panel's columns: better the fewer ones.
  // CHECK-LABEL: func.func nested @tall_narrow
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xi16>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<65792xi16>
  func.func nested @tall_narrow(index, index, memref<1048576xi16>, memref<65536xi16>, memref<65536xf32>) attributes
      {exec.product = #exec.product<m = 1024, n = 64, k = 1024, operands = bf16, result = f32, lda = 1024, ldb = 64, ldc = 64, transpose_a = true>, graph.range = array<i64: 512>}

  // CHECK-LABEL: func.func nested @less_tall
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<8192xi16>
  func.func nested @less_tall(index, index, memref<65536xi16>, memref<16384xi16>, memref<16384xf32>) attributes
      {exec.product = #exec.product<m = 256, n = 64, k = 256, operands = bf16, result = f32, lda = 256, ldb = 64, ldc = 64, transpose_a = true>, graph.range = array<i64: 128>}

  // CHECK-LABEL: func.func nested @far_narrow
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<49152xi16>
  func.func nested @far_narrow(index, index, memref<1048576xi16>, memref<9437184xi16>, memref<36864xf32>) attributes
      {exec.product = #exec.product<m = 64, n = 576, k = 16384, operands = bf16, result = f32, lda = 64, ldb = 576, ldc = 576, transpose_a = true>, graph.range = array<i64: 288>}
}

// -----

// One block of rows reads b where it lies, once, and asks for the next panel's part of lines that are far apart.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 2, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @read_once
  // CHECK-SAME: memref<4096xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<524288xf32>
  // CHECK-NOT: memref.alloca
  // CHECK: memref.prefetch %[[B]][{{.*}}], read, locality<2>
  func.func nested @read_once(index, index, memref<4096xf32>, memref<524288xf32>, memref<8192xf32>) attributes
      {exec.product = #exec.product<m = 8, n = 1024, k = 512, operands = f32, result = f32, lda = 512, ldb = 1024, ldc = 1024>, graph.range = array<i64: 64>}

  // So does one row, of pairs in 16 bits;
  // CHECK-LABEL: func.func nested @single_narrow
  // CHECK-SAME: memref<2048xi16> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<2097152xi16>
  // CHECK: memref.prefetch %[[B]]
  func.func nested @single_narrow(index, index, memref<2048xi16>, memref<2097152xi16>, memref<1024xf32>) attributes
      {exec.product = #exec.product<m = 1, n = 1024, k = 2048, operands = bf16, result = f32, lda = 2048, ldb = 1024, ldc = 1024>, graph.range = array<i64: 64>}

  // Thirteen rows by two vectors are one block,
  // CHECK-LABEL: func.func nested @thirteen
  // CHECK-NOT: memref.alloca
  // CHECK: :26 = scf.for
  func.func nested @thirteen(index, index, memref<3900xf32>, memref<76800xf32>, memref<3328xf32>) attributes
      {exec.product = #exec.product<m = 13, n = 256, k = 300, operands = f32, result = f32, lda = 300, ldb = 256, ldc = 256>, graph.range = array<i64: 16>}

  // fourteen are two by three, whose second reads what the first copies.
  // CHECK-LABEL: func.func nested @fourteen
  // CHECK: memref.alloca
  // CHECK: :21 = scf.for
  func.func nested @fourteen(index, index, memref<4200xf32>, memref<76800xf32>, memref<3584xf32>) attributes
      {exec.product = #exec.product<m = 14, n = 256, k = 300, operands = f32, result = f32, lda = 300, ldb = 256, ldc = 256>, graph.range = array<i64: 32>}

  // In 16 bits a b in the second cache is faster in two.
  // CHECK-LABEL: func.func nested @thirteen_narrow
  // CHECK: memref.alloca
  // CHECK: :21 = scf.for
  func.func nested @thirteen_narrow(index, index, memref<3900xi16>, memref<76800xi16>, memref<3328xf32>) attributes
      {exec.product = #exec.product<m = 13, n = 256, k = 300, operands = bf16, result = f32, lda = 300, ldb = 256, ldc = 256>, graph.range = array<i64: 32>}

  // what the second cache holds is soon there.
  // CHECK-LABEL: func.func nested @in_cache
  // CHECK-NOT: memref.prefetch
  // CHECK: return
  func.func nested @in_cache(index, index, memref<4096xf32>, memref<262144xf32>, memref<4096xf32>) attributes
      {exec.product = #exec.product<m = 8, n = 512, k = 512, operands = f32, result = f32, lda = 512, ldb = 512, ldc = 512>, graph.range = array<i64: 32>}
}

// -----

// Lines of b for few rows.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver5", threads = 2, vector_bits = 512, features = ["+avx512bf16", "+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // Eight lines at a time, for a panel of sixteen vectors, whose sums have a buffer; each asks for the line eight further on.
  // CHECK-LABEL: func.func nested @lines_of_one
  // CHECK-SAME: %[[A:[a-z0-9]*]]: memref<512xf32> {llvm.noalias}, %[[B:[a-z0-9]*]]: memref<523776xf32> {llvm.noalias}, %[[C:[a-z0-9]*]]: memref<1023xf32>
  // CHECK: %[[BUFFER:.*]] = memref.alloca() {alignment = 64 : i64} : memref<256xf32>
  // CHECK: scf.for %{{.*}} = %c0 to %c256 step %c16
  // CHECK-NEXT: vector.store %{{.*}}, %[[BUFFER]]
  // CHECK: scf.for %{{.*}} = %c0 to %c512 step %c8
  // CHECK-COUNT-8: memref.load %[[A]]
  // CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1
  // CHECK: %[[SUM:.*]] = vector.load %[[BUFFER]][%[[AT:.*]]]
  // CHECK: %[[LINE:.*]] = vector.load %[[B]]
  // CHECK: memref.prefetch %[[B]]
  // CHECK: vector.fma %{{.*}}, %[[LINE]], %[[SUM]]
  // CHECK-COUNT-6: vector.fma
  // CHECK: %[[LAST:.*]] = vector.fma
  // CHECK-NEXT: vector.store %[[LAST]], %[[BUFFER]][%[[AT]]]
  // CHECK: scf.for
  // CHECK: %[[TOTAL:.*]] = vector.load %[[BUFFER]]
  // CHECK: vector.store %[[TOTAL]], %[[C]]
  func.func nested @lines_of_one(index, index, memref<512xf32>, memref<523776xf32>, memref<1023xf32>) attributes
      {exec.product = #exec.product<m = 1, n = 1023, k = 512, operands = f32, result = f32, lda = 512, ldb = 1023, ldc = 1023>, graph.range = array<i64: 64>}

  // Four rows have factors of six lines; their panels are an eighth of the lines.
  // CHECK-LABEL: func.func nested @lines_of_four
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<2112xf32>
  // CHECK: scf.for %{{.*}} = %c0 to %c516 step %c6
  // CHECK: scf.for %{{.*}} = %c516 to %c520 step %c1
  func.func nested @lines_of_four(index, index, memref<2080xf32>, memref<2132000xf32>, memref<16400xf32>) attributes
      {exec.product = #exec.product<m = 4, n = 4100, k = 520, operands = f32, result = f32, lda = 520, ldb = 4100, ldc = 4100>, graph.range = array<i64: 257>}

  // The last cache holds this b, the second one that.
  // CHECK-LABEL: func.func nested @four
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @four(index, index, memref<2080xf32>, memref<2080000xf32>, memref<16000xf32>) attributes
      {exec.product = #exec.product<m = 4, n = 4000, k = 520, operands = f32, result = f32, lda = 520, ldb = 4000, ldc = 4000>, graph.range = array<i64: 250>}

  // CHECK-LABEL: func.func nested @one
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @one(index, index, memref<520xf32>, memref<260000xf32>, memref<500xf32>) attributes
      {exec.product = #exec.product<m = 1, n = 500, k = 520, operands = f32, result = f32, lda = 520, ldb = 500, ldc = 500>, graph.range = array<i64: 32>}

  // Of short lines panels are parts of few, and blocks as good.
  // CHECK-LABEL: func.func nested @short_lines
  // CHECK-NOT: memref.alloca
  // CHECK: return
  func.func nested @short_lines(index, index, memref<8000xf32>, memref<1920000xf32>, memref<240xf32>) attributes
      {exec.product = #exec.product<m = 1, n = 240, k = 8000, operands = f32, result = f32, lda = 8000, ldb = 240, ldc = 240>, graph.range = array<i64: 15>}

  // Four lines of pairs, and half of one.
  // CHECK-LABEL: func.func nested @lines_of_pairs
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<1056xf32>
  // CHECK: scf.for %{{.*}} = %c0 to %c500 step %c4
  // CHECK: arith.extui
  func.func nested @lines_of_pairs(index, index, memref<2002xi16>, memref<4204200xi16>, memref<8400xf32>) attributes
      {exec.product = #exec.product<m = 2, n = 4200, k = 1001, operands = bf16, result = f32, lda = 1001, ldb = 4200, ldc = 4200>, graph.range = array<i64: 263>}

  // With swaps they are lines of a.
  // CHECK-LABEL: func.func nested @few_swapped
  // CHECK-SAME: %[[A:[a-z0-9]*]]: memref<2184000xf32>
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<1056xf32>
  // CHECK: memref.prefetch %[[A]]
  func.func nested @few_swapped(index, index, memref<2184000xf32>, memref<1040xf32>, memref<8400xf32>) attributes
      {exec.product = #exec.product<m = 4200, n = 2, k = 520, operands = f32, result = f32, lda = 4200, ldb = 2, ldc = 2, transpose_a = true>, graph.range = array<i64: 263>}
}
