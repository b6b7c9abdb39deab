// RUN: dsopt-opt %s -offload-activations="to=cpu least-bytes=4096" | FileCheck %s
// RUN: dsopt-opt %s -offload-activations="to=cpu least-bytes=4096" -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: dsopt-opt %s > %t.device
// RUN: dsopt-opt %s -offload-activations | diff %t.device -
// RUN: dsopt-opt %s -offload-activations=to=cpu 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/{dp = 1 : i64}/{dp = 1 : i64, prefetch = 2 : i64}/' %s | dsopt-opt -offload-activations="to=cpu least-bytes=4096" | FileCheck %s --check-prefix=AHEAD

// @a, @b and @e are left alone for long; @c for too short a while, @s is too small; @a is read twice behind it.
module attributes {dsopt.options = {dp = 1 : i64}} {
  exec.stream @compute compute
  func.func private @first(memref<1024xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @both(memref<1024xf32> {exec.access = #exec.access<read>}, memref<1024xf32> {exec.access = #exec.access<write>}, memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @move(memref<1024xf32> {exec.access = #exec.access<read>}, memref<1024xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @last(memref<1024xf32> {exec.access = #exec.access<read>}, memref<1024xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  exec.program @position0 position 0 blocks [0, 3] {
    exec.memory @device device
    exec.buffer @a : memref<1024xf32> activations slots 2 stride 4096
    exec.buffer @b : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @s : memref<64xf32> activations slots 1 stride 256
    exec.buffer @e : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @c : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @d : memref<1024xf32> activations slots 1 stride 4096
    exec.schedule {
      %r0 = exec.run @first [@a[1]] micro_batch 0 on @compute
      %r1 = exec.run @both [@a[1], @b, @s] micro_batch 0 on @compute
      %r1e = exec.run @move [@b, @e] micro_batch 0 on @compute
      %r2 = exec.run @move [@b, @c] micro_batch 0 on @compute
      %r3 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r4 = exec.run @move [@d, @c] micro_batch 0 on @compute
      %r5 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r6 = exec.run @move [@d, @c] micro_batch 0 on @compute
      %r7 = exec.run @last [@c, @b, @s] micro_batch 0 on @compute
      %r8 = exec.run @last [@a[1], @b, @s] micro_batch 0 on @compute
      %r9 = exec.run @last [@a[1], @b, @s] micro_batch 0 on @compute
      %r10 = exec.run @move [@e, @d] micro_batch 0 on @compute
    }
  }
  // It has the memories of its position.
  exec.program @evaluate0 evaluation position 0 blocks [0, 3] {
    exec.memory @device device
    exec.schedule {
    }
  }
}
// CHECK-LABEL: exec.program @position0
// CHECK: exec.memory @host host
// CHECK: exec.buffer @host.a in @host : memref<1024xf32> activations slots 2 stride 4096
// CHECK: exec.buffer @host.b in @host : memref<1024xf32> activations slots 1 stride 4096
// CHECK: exec.buffer @host.e in @host
// CHECK-NOT: exec.buffer @host.
// CHECK: exec.schedule {
// CHECK-NEXT: %[[R0:.*]] = exec.run @first
// CHECK-NEXT: %[[A:.*]] = exec.copy @a[1] to @host.a[1] bytes 4096 on @download
// CHECK-NEXT: exec.run @both
// CHECK-NEXT: exec.copy @b to @host.b bytes 4096 on @download
// What @e overwrites may be what @a had.
// CHECK-NEXT: exec.wait %[[A]] on @compute
// CHECK-NEXT: exec.run @move [@b, @e]
// CHECK-NEXT: exec.copy @e to @host.e bytes 4096 on @download
// CHECK-NEXT: exec.run @move [@b, @c]
// CHECK-NEXT: exec.run
// CHECK-NEXT: exec.run
// CHECK-NEXT: %[[R5:.*]] = exec.run
// CHECK-NEXT: exec.wait %[[R5]] on @upload
// CHECK-NEXT: exec.copy @host.b to @b bytes 4096 on @upload
// CHECK-NEXT: %[[R6:.*]] = exec.run
// CHECK-NEXT: exec.wait %[[R6]] on @upload
// CHECK-NEXT: exec.copy @host.a[1] to @a[1] bytes 4096 on @upload
// CHECK-NEXT: exec.run @last [@c, @b, @s]
// CHECK-NEXT: %[[R8:.*]] = exec.run @last
// CHECK-NEXT: exec.wait %[[R8]] on @upload
// CHECK-NEXT: exec.copy @host.e to @e bytes 4096 on @upload
// CHECK-NEXT: exec.run @last
// CHECK-NEXT: exec.run @move [@e, @d]
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @evaluate0
// CHECK: exec.memory @host host

// AHEAD-COUNT-1: exec.copy {{.*}} on @download
// AHEAD: exec.copy @host.a[1] to @a[1]
// AHEAD-NEXT: exec.run @move [@d, @c]
// AHEAD-NEXT: exec.run @last [@c

// What is away frees its bytes: three values and the small one are there at most, in place of five.
// PLAN: copied = {device = 12288 : i64, host = 12288 : i64}
// PLAN: exec.memory @device device bytes {{[0-9]+}} bound 12544

// NONE: warning: nothing is offloaded: no activation of at least 65536 bytes is left alone for long enough
