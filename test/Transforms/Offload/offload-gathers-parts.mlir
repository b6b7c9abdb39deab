// RUN: dsopt-opt %s -offload-gathers | FileCheck %s

// Of what lies on disk only those parts are read of which blocks read some bytes.
module attributes {dsopt.options = {dp = 1 : i64, sub_group_size = 2048 : i64}} {
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  graph.parameter @w : tensor<4096xf32> from "m" at 0 bytes 16384
  graph.parameter @v : tensor<2048xf32> from "m" at 16384 bytes 8192
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4096>, #dist.range<@v, 4096, 2048>] elements 6144 padded 6144 over [edp, ep, sp] zero 3 in disk
  func.func private @f(memref<4096xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @b(memref<2048xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<6144xf32> parameters slots 1 stride 24576 persistent stored of @b0
    exec.buffer @b0.full : memref<6144xf32> buffers slots 1 stride 24576 gathered of @b0
    exec.buffer @y : memref<64xf32> activations slots 1 stride 256
    exec.schedule {
      %g = exec.gather @b0.param to @b0.full bytes 24576 all_gather order 0 over @dp on @comm
      %r = exec.run @f [@b0.full, @y] micro_batch 0 on @compute
      %h = exec.gather @b0.param to @b0.full bytes 24576 all_gather order 1 over @dp on @comm
      exec.wait %r on @comm
      %s = exec.run @b [@b0.full+16384, @y] micro_batch 0 on @compute
    }
  }
}
// CHECK: exec.schedule
// CHECK-NEXT: exec.copy @b0.param to @host.fetch.f32 bytes 8192 on @disk
// CHECK-NEXT: exec.copy @host.fetch.f32 to @b0.full bytes 8192 on @upload
// CHECK-NEXT: exec.copy @b0.param+8192 to @host.fetch.f32[1] bytes 8192 on @disk
// CHECK-NEXT: exec.copy @host.fetch.f32[1] to @b0.full+8192 bytes 8192 on @upload
// CHECK-NEXT: exec.run @f
// CHECK-NEXT: exec.copy @b0.param+16384 to @host.fetch.f32[2] bytes 8192 on @disk
// CHECK-NEXT: exec.copy @host.fetch.f32[2] to @b0.full+16384 bytes 8192 on @upload
// CHECK-NEXT: exec.wait
// CHECK-NEXT: exec.run @b
