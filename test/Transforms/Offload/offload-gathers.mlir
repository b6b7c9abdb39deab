// RUN: dsopt-opt %s -offload-gathers | FileCheck %s
// RUN: sed 's/dp = 1/dp = 2/g;s/padded 64/padded 128/' %s | dsopt-opt -offload-gathers | FileCheck %s --check-prefix=TWO
// RUN: sed 's/ in host//' %s | dsopt-opt > %t.device
// RUN: sed 's/ in host//' %s | dsopt-opt -offload-gathers | diff %t.device -
// RUN: dsopt-opt %s -offload-gathers -insert-waits | FileCheck %s --check-prefix=WAITS
// RUN: sed 's/ in host/ in disk/' %s | dsopt-opt -offload-gathers | FileCheck %s --check-prefix=DISK
// RUN: sed 's/ in host/ in disk/;s/dp = 1/dp = 2/g;s/padded 64/padded 128/' %s | dsopt-opt -offload-gathers | FileCheck %s --check-prefix=DISK-TWO

// One rank copies what others gather; with two, each copies its slice to its place, which the gather then has.
module attributes {dsopt.options = {dp = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.parameter @v : tensor<64xf32> from "m" at 256 bytes 256
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3 in host
  func.func private @f(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @y : memref<64xf32> activations slots 1 stride 256
    exec.schedule {
      %g = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
      %r = exec.run @f [@b0.full, @y] micro_batch 0 on @compute
    }
  }
}
// CHECK: exec.memory @host host
// CHECK: exec.buffer @b0.param in @host :
// CHECK: exec.buffer @b0.full :
// CHECK: exec.schedule
// CHECK-NEXT: exec.copy @b0.param to @b0.full bytes 256 on @upload
// CHECK-NEXT: exec.run
// TWO: exec.copy @b0.param to @b0.full+256*edp bytes 256 on @upload
// TWO-NEXT: exec.gather @b0.full+256*edp to @b0.full bytes 256 all_gather order 0 over @dp on @comm
// WAITS: %[[COPY:.*]] = exec.copy
// WAITS-NEXT: exec.wait %[[COPY]] on @compute
// DISK: exec.memory @host host alignment 4096
// DISK: exec.memory @disk disk alignment 4096
// DISK: exec.buffer @b0.param in @disk :
// DISK: exec.buffer @host.fetch.f32 in @host : memref<2048xf32> buffers slots 3 stride 8192
// DISK: exec.schedule
// DISK-NEXT: exec.copy @b0.param to @host.fetch.f32 bytes 256 on @disk
// DISK-NEXT: exec.copy @host.fetch.f32 to @b0.full bytes 256 on @upload
// DISK-NEXT: exec.run
// DISK-TWO: exec.copy @b0.param to @host.fetch.f32 bytes 256 on @disk
// DISK-TWO-NEXT: exec.copy @host.fetch.f32 to @b0.full+256*edp bytes 256 on @upload
// DISK-TWO-NEXT: exec.gather @b0.full+256*edp to @b0.full bytes 256 all_gather order 0 over @dp on @comm
