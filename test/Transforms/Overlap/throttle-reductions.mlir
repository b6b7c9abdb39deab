// RUN: dsopt-opt %s -throttle-reductions | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: dsopt-opt %s -throttle-reductions=in-flight=3 | FileCheck %s --check-prefixes=CHECK,THREE

// THREE: dsopt.options = {dp = 2 : i64, pp = 1 : i64, reductions_in_flight = 3 : i64}
// CHECK: exec.schedule
// TWO: %[[R0:.*]] = exec.reduce {{.*}} order 0
// TWO-NEXT: exec.run @w {{.*}} micro_batch 1
// TWO-NEXT: %[[R1:.*]] = exec.reduce {{.*}} order 1
// TWO-NEXT: exec.wait %[[R0]] on @compute
// TWO-NEXT: exec.run @w {{.*}} micro_batch 2
// TWO-NEXT: exec.reduce
// TWO-NEXT: exec.wait %[[R1]] on @compute
// TWO-NEXT: exec.run @w {{.*}} micro_batch 3
// THREE: %[[R0:.*]] = exec.reduce {{.*}} order 0
// THREE-NOT: exec.wait
// THREE: exec.reduce {{.*}} order 2
// THREE-NEXT: exec.wait %[[R0]] on @compute
// THREE-NEXT: exec.run @w {{.*}} micro_batch 3
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
      %w0 = exec.run @w [@x, @b0.whole.0.0] micro_batch 0 on @compute
      %r0 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
      %w1 = exec.run @w [@x, @b0.whole.0.0] micro_batch 1 on @compute
      %r1 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 1 over @dp on @comm
      %w2 = exec.run @w [@x, @b0.whole.0.0] micro_batch 2 on @compute
      %r2 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 2 over @dp on @comm
      %w3 = exec.run @w [@x, @b0.whole.0.0] micro_batch 3 on @compute
      %r3 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 3 over @dp on @comm
    }
  }
}
