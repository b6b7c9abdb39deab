// RUN: dsopt-opt %s -offload-activations="to=cpu least-bytes=4096" | FileCheck %s

// The run that a way back waits for writes a value that leaves itself: @a comes back behind @x's third writer, whose
// download stands first. Unless it waits for that run, it may start at once, and nobody else can have its bytes.
module attributes {dsopt.options = {dp = 1 : i64}} {
  exec.stream @compute compute
  func.func private @first(memref<1024xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @move(memref<1024xf32> {exec.access = #exec.access<read>}, memref<1024xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @last(memref<1024xf32> {exec.access = #exec.access<read>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  exec.program @position0 position 0 blocks [0, 3] {
    exec.memory @device device
    exec.buffer @a : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @x : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @c : memref<1024xf32> activations slots 1 stride 4096
    exec.buffer @d : memref<1024xf32> activations slots 1 stride 4096
    exec.schedule {
      %r0 = exec.run @first [@x] micro_batch 0 on @compute
      %r1 = exec.run @move [@x, @a] micro_batch 0 on @compute
      %r2 = exec.run @move [@a, @c] micro_batch 0 on @compute
      %r3 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r4 = exec.run @move [@d, @c] micro_batch 0 on @compute
      %r5 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r6 = exec.run @last [@x] micro_batch 0 on @compute
      %r7 = exec.run @move [@d, @x] micro_batch 0 on @compute
      %r8 = exec.run @move [@d, @c] micro_batch 0 on @compute
      %r9 = exec.run @last [@a] micro_batch 0 on @compute
      %r10 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r11 = exec.run @move [@d, @c] micro_batch 0 on @compute
      %r12 = exec.run @move [@c, @d] micro_batch 0 on @compute
      %r13 = exec.run @last [@x] micro_batch 0 on @compute
    }
  }
}
// CHECK: %[[R7:.*]] = exec.run @move [@d, @x]
// CHECK-NEXT: exec.copy @x to @host.x bytes 4096 on @download
// CHECK-NEXT: exec.wait %[[R7]] on @upload
// CHECK-NEXT: exec.copy @host.a to @a bytes 4096 on @upload
// CHECK-NEXT: exec.run @move [@d, @c]
// CHECK-NEXT: exec.run @last [@a]
// CHECK-NEXT: exec.run @move [@c, @d]
// CHECK-NEXT: %[[R11:.*]] = exec.run @move [@d, @c]
// CHECK-NEXT: exec.wait %[[R11]] on @upload
// CHECK-NEXT: exec.copy @host.x to @x bytes 4096 on @upload
