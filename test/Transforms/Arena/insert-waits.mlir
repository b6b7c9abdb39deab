// RUN: dsopt-opt %s -split-input-file -insert-waits | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -insert-waits -insert-waits | FileCheck %s

// A run waits for the gather that it reads, once; the next gather of the same bytes waits for the last run that
// reads them; a send waits for what it sends. What is asked for stays where it says something new.
// CHECK: exec.schedule
// CHECK-NEXT: exec.input
// CHECK-NEXT: %[[G0:.*]] = exec.gather
// CHECK-NEXT: exec.wait %[[G0]] on @compute
// CHECK-NEXT: %[[F0:.*]] = exec.run
// CHECK-NEXT: %[[F1:.*]] = exec.run
// CHECK-NEXT: exec.wait %[[F1]] on @comm
// CHECK-NEXT: exec.gather
// CHECK-NEXT: exec.wait %[[F0]] on @send
// CHECK-NEXT: exec.wait %[[F1]] on @send
// CHECK-NEXT: exec.send
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @send communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @pp over [pp]
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
      exec.wait %g0 on @compute
      %f1 = exec.run @f [@h, @y, @b0.full] micro_batch 0 on @compute
      %g1 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 1 over @dp on @comm
      exec.wait %f0 on @send
      %s = exec.send @y bytes 64 to 1 tag "y" micro_batch 0 send_recv over @pp on @send
    }
  }
}
