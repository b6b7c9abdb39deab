// RUN: dsopt-opt %s -load-pass-plugin=%build/test/Transforms/Overlap/greedy-gathers.so -pass-pipeline="builtin.module(greedy-gathers)" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: dsopt-opt %s -load-pass-plugin=%build/test/Transforms/Overlap/greedy-gathers.so -pass-pipeline="builtin.module(greedy-gathers{device-memory=2300})" | FileCheck %s --check-prefixes=CHECK,SOME
// RUN: dsopt-opt %s -load-pass-plugin=%build/test/Transforms/Overlap/greedy-gathers.so -pass-pipeline="builtin.module(greedy-gathers{device-memory=1720})" | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: dsopt-opt %s -load-pass-plugin=%build/test/Transforms/Overlap/greedy-gathers.so -pass-pipeline="builtin.module(greedy-gathers{device-memory=2300},prefetch-gathers{distance=0})" | FileCheck %s --check-prefixes=CHECK,WAITS
// RUN: dsopt-opt %s -load-pass-plugin=%build/test/Transforms/Overlap/greedy-gathers.so -pass-pipeline="builtin.module(greedy-gathers{device-memory=2300},prefetch-gathers{distance=0},insert-waits,plan-memory)" -o /dev/null

// Slices of 512 bytes, and runs that are given 512 bytes of whole parameters each; the first has 512 bytes besides.
// Without a budget all is gathered once, at the front.
// CHECK: exec.schedule
// ALL-NEXT: exec.gather @b0.param{{.*}} order 0
// ALL-NEXT: exec.gather @b1.param{{.*}} order 1
// ALL-NEXT: exec.run @g
// ALL-NEXT: exec.run @f [@b1.full]
// ALL-NEXT: exec.run @f [@b1.full]
// ALL-NEXT: exec.run @f [@b0.full]

// 2070 bytes are filled: beside the peak of 1536 there is room for one bucket that stays, and then for the first gather
// of the other beside the first run.
// SOME-NEXT: exec.gather @b0.param{{.*}} order 0
// SOME-NEXT: exec.gather @b1.param{{.*}} order 1
// SOME-NEXT: exec.run @g
// SOME-NEXT: exec.run @f [@b1.full]
// SOME-NEXT: exec.gather @b1.param{{.*}} order 2
// SOME-NEXT: exec.run @f [@b1.full]
// SOME-NEXT: exec.run @f [@b0.full]

// prefetch-gathers leaves them there, and they wait for the run in front of them.
// WAITS-NEXT: exec.gather @b0.param{{.*}} order 0
// WAITS-NEXT: exec.gather @b1.param{{.*}} order 1
// WAITS-NEXT: exec.run @g
// WAITS-NEXT: %[[F1:.*]] = exec.run @f [@b1.full]
// WAITS-NEXT: exec.wait %[[F1]] on @comm
// WAITS-NEXT: exec.gather @b1.param{{.*}} order 2

// 1548 bytes: none stays, and beside the first run there is no room for another. The last gather of @b0 passes two
// runs, up to the one that needs what the buffer holds.
// NONE-NEXT: exec.gather @b0.param{{.*}} order 0
// NONE-NEXT: exec.run @g
// NONE-NEXT: exec.gather @b1.param{{.*}} order 1
// NONE-NEXT: exec.gather @b0.param{{.*}} order 2
// NONE-NEXT: exec.run @f [@b1.full]
// NONE-NEXT: exec.gather @b1.param{{.*}} order 3
// NONE-NEXT: exec.run @f [@b1.full]
// NONE-NEXT: exec.run @f [@b0.full]
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  func.func private @f(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @g(memref<128xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<write>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b1.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b1
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @b1.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b1
    exec.buffer @h : memref<128xf32> activations slots 1 stride 512
    exec.schedule {
      %g0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
      %f0 = exec.run @g [@b0.full, @h] micro_batch 0 on @compute
      %g1 = exec.gather @b1.param to @b1.full bytes 256 all_gather order 1 over @dp on @comm
      %f1 = exec.run @f [@b1.full] micro_batch 0 on @compute
      %g2 = exec.gather @b1.param to @b1.full bytes 256 all_gather order 2 over @dp on @comm
      %f2 = exec.run @f [@b1.full] micro_batch 0 on @compute
      %g3 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 3 over @dp on @comm
      %f3 = exec.run @f [@b0.full] micro_batch 0 on @compute
    }
  }
}
