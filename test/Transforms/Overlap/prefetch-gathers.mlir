// RUN: dsopt-opt %s -prefetch-gathers | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: dsopt-opt %s -prefetch-gathers=distance=0 | FileCheck %s --check-prefixes=CHECK,ZERO
// RUN: dsopt-opt %s -prefetch-gathers=distance=9 | FileCheck %s --check-prefixes=CHECK,FAR
// RUN: dsopt-opt %s -prefetch-gathers=distance=9 -insert-waits -plan-memory -o /dev/null

// Gathers in front of the runs 0, 1 and 3. The last cannot pass run 0, which needs what the buffer holds then.
// FAR: dsopt.options = {dp = 2 : i64, pp = 1 : i64, prefetch = 9 : i64}
// CHECK: exec.schedule
// ONE-NEXT: exec.gather @b0.param{{.*}} order 0
// ONE-NEXT: exec.gather @b1.param{{.*}} order 1
// ONE-NEXT: exec.input
// ONE-NEXT: exec.run
// ONE-NEXT: %[[F1:.*]] = exec.run {{.*}}@b1.full
// ONE-NEXT: exec.wait %[[F1]] on @comm
// ONE-NEXT: exec.gather @b0.param{{.*}} order 2
// ONE-NEXT: exec.run {{.*}}@b1.full
// ONE-NEXT: exec.run {{.*}}@b0.full

// ZERO-NEXT: exec.gather @b0.param{{.*}} order 0
// ZERO-NEXT: exec.input
// ZERO-NEXT: %[[F0:.*]] = exec.run
// ZERO-NEXT: exec.wait %[[F0]] on @comm
// ZERO-NEXT: exec.gather @b1.param{{.*}} order 1
// ZERO-NEXT: exec.run
// ZERO-NEXT: %[[F2:.*]] = exec.run
// ZERO-NEXT: exec.wait %[[F2]] on @comm
// ZERO-NEXT: exec.gather @b0.param{{.*}} order 2
// ZERO-NEXT: exec.run

// FAR-NEXT: exec.gather @b0.param{{.*}} order 0
// FAR-NEXT: exec.gather @b1.param{{.*}} order 1
// FAR-NEXT: exec.input
// FAR-NEXT: %[[F0:.*]] = exec.run
// FAR-NEXT: exec.wait %[[F0]] on @comm
// FAR-NEXT: exec.gather @b0.param{{.*}} order 2
// FAR-NEXT: exec.run
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  func.func private @f(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @w(memref<16xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b1.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b1
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @b1.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b1
    exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @b0.whole.0.0 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @x : memref<16xf32> activations slots 1 stride 64
    exec.buffer @h : memref<16xf32> activations slots 1 stride 64
    exec.buffer @y : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      %x0 = exec.input "x" to @x micro_batch 0 on @compute
      %g0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
      %f0 = exec.run @f [@x, @h, @b0.full] micro_batch 0 on @compute
      %g1 = exec.gather @b1.param to @b1.full bytes 256 all_gather order 1 over @dp on @comm
      %f1 = exec.run @f [@h, @y, @b1.full] micro_batch 0 on @compute
      %f2 = exec.run @f [@y, @h, @b1.full] micro_batch 0 on @compute
      %g2 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 2 over @dp on @comm
      %f3 = exec.run @f [@h, @y, @b0.full] micro_batch 0 on @compute
    }
  }
}
