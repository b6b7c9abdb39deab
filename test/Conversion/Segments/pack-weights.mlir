// RUN: dsopt-opt %s -pack-weights | FileCheck %s
// RUN: dsopt-opt %s -pack-weights -insert-waits -compile-products | FileCheck %s --check-prefix=KERNELS
// Read three times only, a limit of memory, many rows, no parameter of a bucket, a product that is the library's:
// RUN: sed '/LAST/d' %s | dsopt-opt > %t && dsopt-opt %t -pack-weights | diff %t -
// RUN: sed 's/dp = 1/device_memory = 1000000 : i64, dp = 1/' %s | dsopt-opt > %t && dsopt-opt %t -pack-weights | diff %t -
// RUN: sed 's/8x/17x/g' %s | dsopt-opt > %t && dsopt-opt %t -pack-weights | diff %t -
// RUN: sed 's/ persistent stored of @b0//' %s | dsopt-opt > %t && dsopt-opt %t -pack-weights | diff %t -
// Of a product with a bias the same:
// RUN: sed 's/exec.gemm %a, %w ->/exec.gemm_epilogue bias %a, %w, %bias ->/; s/: memref<8x100xf32>, memref<100x200xf32, strided<\[200, 1\], offset: 64>> ->/: memref<8x100xf32>, memref<100x200xf32, strided<[200, 1], offset: 64>>, memref<200xf32> ->/' %s | dsopt-opt -pack-weights -insert-waits -compile-products | FileCheck %s --check-prefix=BIAS
// RUN: sed 's/"+fma"/"+sse2"/' %s | dsopt-opt > %t && dsopt-opt %t -pack-weights | diff %t -

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// Four micro-batches read a weight of 100 by 200, behind 64 elements of its bucket: whole vectors of columns are 208.
module attributes {dsopt.options = {dp = 1 : i64}, dsopt.target = #target} {
  // CHECK: module @kernels
  // CHECK-NEXT: func.func nested @pack0(index, index, memref<20000xf32>, memref<20800xf32>) attributes {exec.packs, exec.product = #exec.product<m = 8, n = 200, k = 100, {{.*}}packed = true>, graph.range = array<i64: 13>}
  // KERNELS: func.func nested @pack0
  // KERNELS: func.func nested @product0(index, index, memref<800xf32>, memref<20800xf32>, memref<1600xf32>) attributes {{.*}}packed = true
  module @kernels attributes {dsopt.target = #target} {}
  exec.stream @compute compute
  graph.parameter @v : tensor<64xf32> from "m" at 0 bytes 256
  graph.parameter @w : tensor<100x200xf32> from "m" at 256 bytes 80000
  dist.bucket @b0 : f32 of [0] [#dist.range<@v, 0, 64>, #dist.range<@w, 64, 20000>] elements 20096 padded 20096 over [edp, ep, sp] zero 1
  // CHECK: func.func private @f(%[[A:.*]]: memref<8x100xf32> {{.*}}, %[[B:.*]]: memref<20096xf32> {{.*}}, %[[C:.*]]: memref<8x200xf32> {{.*}}, %[[PACKED:.*]]: memref<20800xf32> {exec.access = #exec.access<read>})
  // CHECK: exec.gemm %[[A]], %{{.*}} packed %[[PACKED]] : memref<20800xf32> -> %[[C]]
  // KERNELS: exec.gemm {{.*}} by <@kernels::@product0 range 13>
  // BIAS: @product0(index, index, memref<800xf32>, memref<20800xf32>, memref<200xf32>, memref<1600xf32>) attributes {{.*}}bias = true, packed = true
  // BIAS: exec.gemm_epilogue bias %{{.*}}, %{{.*}} packed %{{.*}} : memref<20800xf32>, %{{.*}} -> %{{.*}} by <@kernels::@product0 range 13>
  func.func private @f(%a: memref<8x100xf32> {exec.access = #exec.access<read>}, %b: memref<20096xf32> {exec.access = #exec.access<read>},
                       %c: memref<8x200xf32> {exec.access = #exec.access<write>})
      attributes {exec.segment, exec.temp_bytes = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = exec.view %b : memref<20096xf32> to memref<100x200xf32, strided<[200, 1], offset: 64>>
    %bias = exec.view %b : memref<20096xf32> to memref<200xf32>
    exec.gemm %a, %w -> %c : memref<8x100xf32>, memref<100x200xf32, strided<[200, 1], offset: 64>> -> memref<8x200xf32>
    return
  }
  // CHECK: exec.program
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<20096xf32> parameters slots 1 stride 80384 persistent stored of @b0
    exec.buffer @x : memref<8x100xf32> activations slots 1 stride 6848
    exec.buffer @y : memref<8x200xf32> activations slots 1 stride 13632
    // CHECK: exec.buffer @b0.packed.0 : memref<20800xf32> packed slots 1 stride 83200
    // CHECK: exec.schedule
    exec.schedule {
      // CHECK-NEXT: exec.map @kernels::@pack0 [@b0.param+256, @b0.packed.0] elements 13 grain 1 on @compute
      // CHECK-NEXT: exec.run @f [@x, @b0.param, @y, @b0.packed.0] micro_batch 0
      // CHECK-NEXT: exec.run @f [@x, @b0.param, @y, @b0.packed.0] micro_batch 1
      %0 = exec.run @f [@x, @b0.param, @y] micro_batch 0 on @compute
      %1 = exec.run @f [@x, @b0.param, @y] micro_batch 1 on @compute
      %2 = exec.run @f [@x, @b0.param, @y] micro_batch 2 on @compute
      %3 = exec.run @f [@x, @b0.param, @y] micro_batch 3 on @compute // LAST
    }
  }
}
