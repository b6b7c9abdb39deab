// RUN: dsopt-opt %s -freeze-updates | FileCheck %s
// RUN: dsopt-opt %s -freeze-updates -freeze-updates | not grep -F frozen.frozen
// RUN: sed 's/freeze_step = 3 : i64//' %s | dsopt-opt > %t.none
// RUN: sed 's/freeze_step = 3 : i64//' %s | dsopt-opt -freeze-updates | diff %t.none -

// Each program of a step has one for steps behind the freeze beside it, at each size; it reduces nothing, and its collectives
// are numbered anew. Those that evaluate have none.
module attributes {dsopt.options = {freeze_step = 3 : i64}, exec.dimension = {name = "n", size = 4 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512
    exec.schedule {
      %0 = exec.reduce @b0.grad.0 to @b0.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
      %1 = exec.agree norms [] losses [] order 1 over @dp on @comm
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
// CHECK: exec.reduce @b0.grad.0
// CHECK: exec.program @position0.frozen frozen position 0 blocks [0, 1] {
// CHECK: exec.schedule {
// CHECK-NOT: exec.reduce
// CHECK: exec.agree norms [] losses [] order 0
// CHECK: exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
// CHECK-NOT: frozen position
// CHECK: exec.program @position0.2 position 0 blocks [0, 1] attributes {variant = 2 : i64} {
// CHECK: exec.program @position0.2.frozen frozen position 0 blocks [0, 1] attributes {variant = 2 : i64} {
