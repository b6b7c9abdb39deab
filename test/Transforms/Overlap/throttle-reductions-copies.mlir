// RUN: dsopt-opt %s -throttle-reductions | FileCheck %s
// RUN: dsopt-opt %s -throttle-reductions -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: dsopt-opt %s -insert-waits -plan-memory | FileCheck %s --check-prefix=WITHOUT

// A run that begins a gradient waits for the copy of the one before the last; one that adds to it does not. Otherwise
// no two of the four could have the same bytes.
module attributes {dsopt.options = {dp = 1 : i64}} {
  exec.stream @compute compute
  exec.stream @download copy
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 1024>] elements 1024 padded 1024 over [edp, ep, sp] zero 0
  func.func private @w(memref<1024xf32> {exec.access = #exec.access<update>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 4] {
    exec.memory @device device
    exec.memory @host host
    exec.buffer @g0 : memref<1024xf32> gradients slots 1 stride 4096
    exec.buffer @g1 : memref<1024xf32> gradients slots 1 stride 4096
    exec.buffer @g2 : memref<1024xf32> gradients slots 1 stride 4096
    exec.buffer @g3 : memref<1024xf32> gradients slots 1 stride 4096
    exec.buffer @h in @host : memref<1024xf32> buffers slots 4 stride 4096
    exec.schedule {
      %r0 = exec.run @w [@g0] micro_batch 0 on @compute
      %c0 = exec.copy @g0 to @h bytes 4096 on @download
      %r1 = exec.run @w [@g1] micro_batch 0 on @compute
      %c1 = exec.copy @g1 to @h[1] bytes 4096 on @download
      %r2 = exec.run @w [@g2] micro_batch 0 on @compute
      %r3 = exec.run @w [@g2] micro_batch 1 accumulate on @compute
      %c2 = exec.copy @g2 to @h[2] bytes 4096 on @download
      %r4 = exec.run @w [@g3] micro_batch 0 on @compute
      %c3 = exec.copy @g3 to @h[3] bytes 4096 on @download
    }
  }
}
// CHECK: exec.schedule {
// CHECK-NEXT: exec.run @w [@g0]
// CHECK-NEXT: %[[C0:.*]] = exec.copy @g0
// CHECK-NEXT: exec.run @w [@g1]
// CHECK-NEXT: %[[C1:.*]] = exec.copy @g1
// CHECK-NEXT: exec.wait %[[C0]] on @compute
// CHECK-NEXT: exec.run @w [@g2]
// CHECK-NEXT: exec.run @w [@g2]
// CHECK-NEXT: exec.copy @g2
// CHECK-NEXT: exec.wait %[[C1]] on @compute
// CHECK-NEXT: exec.run @w [@g3]

// PLAN: exec.memory @device device bytes 8192
// WITHOUT: exec.memory @device device bytes 16384
