// RUN: dsopt-opt %s -dedupe-segments | FileCheck %s

// Which parameter or constant an argument is does not make segments differ; an
// access, a type or scratch does. A run of a shared segment keeps its own block, phase and
// part; one that has them keeps them.
// CHECK: func.func private @block0.F
// CHECK-NOT: func.func private @block1.F
// CHECK: func.func private @block2.F
// CHECK: func.func private @block3.F
// CHECK: exec.run @block0.F [{{.*}} micro_batch 0
// CHECK: exec.run @block0.F for <1 E part 2> [{{.*}} micro_batch 1
// CHECK: exec.run @block0.F for <7 F> [{{.*}} micro_batch 2
// CHECK: exec.run @block2.F
// CHECK: exec.run @block3.F
module {
  func.func private @block0.F(%a: memref<4xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}, %g: memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 16 : i64, graph.block = 0 : i64} {
    exec.accumulate %a -> %g : memref<4xf32> -> memref<4xf32>
    return
  }
  func.func private @block1.F(%a: memref<4xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}, %g: memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 16 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<E>, graph.part = 2 : i64} {
    exec.accumulate %a -> %g : memref<4xf32> -> memref<4xf32>
    return
  }
  func.func private @block2.F(%a: memref<4xf32> {exec.access = #exec.access<read>, exec.parameter = @w2}, %g: memref<4xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, exec.temp_bytes = 16 : i64, graph.block = 2 : i64} {
    exec.accumulate %a -> %g : memref<4xf32> -> memref<4xf32>
    return
  }
  func.func private @block3.F(%a: memref<4xf32> {exec.access = #exec.access<read>, exec.parameter = @w3}, %g: memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 32 : i64, graph.block = 3 : i64} {
    exec.accumulate %a -> %g : memref<4xf32> -> memref<4xf32>
    return
  }
  exec.stream @compute compute
  exec.program @position0 position 0 blocks [0, 4] {
    exec.memory @device device
    exec.buffer @x : memref<4xf32> activations slots 1 stride 64
    exec.buffer @y : memref<4xf32> activations slots 1 stride 64
    exec.buffer @t : memref<32xi8> buffers slots 1 stride 64
    exec.schedule {
      %0 = exec.run @block0.F [@x, @y] temp @t micro_batch 0 on @compute
      %1 = exec.run @block1.F [@x, @y] temp @t micro_batch 1 on @compute
      %7 = exec.run @block1.F for <7 F> [@x, @y] temp @t micro_batch 2 on @compute
      %2 = exec.run @block2.F [@x, @y] temp @t micro_batch 0 on @compute
      %3 = exec.run @block3.F [@x, @y] temp @t micro_batch 0 on @compute
    }
  }
}
