// RUN: dsopt-opt %s -delay-updates | FileCheck %s
// RUN: dsopt-opt %s -delay-updates -delay-updates | not grep -F delayed.delayed
// RUN: sed 's/delayed_update = 3 : i64//' %s | dsopt-opt > %t.none
// RUN: sed 's/delayed_update = 3 : i64//' %s | dsopt-opt -delay-updates | diff %t.none -

// Each program of a step has one for steps that lag beside it, at each size; those that evaluate have none.
module attributes {dsopt.options = {delayed_update = 3 : i64}, exec.dimension = {name = "n", size = 4 : i64}} {
  exec.stream @compute compute
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @x : memref<4xf32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.input "x" to @x micro_batch 0 on @compute
    }
  }
  exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
    exec.memory @device device
    exec.schedule {
    }
  }
  exec.program @position0.2 position 0 blocks [0, 1] attributes {variant = 2 : i64} {
    exec.memory @device device
    exec.schedule {
    }
  }
}
// CHECK: exec.program @position0 position 0 blocks [0, 1] {
// CHECK: exec.program @position0.delayed delayed position 0 blocks [0, 1] {
// CHECK: exec.buffer @x
// CHECK: exec.input "x" to @x
// CHECK: exec.program @evaluate0
// CHECK-NOT: delayed
// CHECK: exec.program @position0.2 position 0 blocks [0, 1] attributes {variant = 2 : i64} {
// CHECK: exec.program @position0.2.delayed delayed position 0 blocks [0, 1] attributes {variant = 2 : i64} {
// CHECK: exec.stream @download copy
