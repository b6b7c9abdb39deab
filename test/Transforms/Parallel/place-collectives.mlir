// RUN: dsopt-opt %s "-partition-zero=stage=3 ranks=2" -place-collectives -split-stages=stages=1 -verify-dist | FileCheck %s

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<8x8xf32> "grad" of @w block 0

// CHECK-LABEL: @block0.F
// CHECK-NEXT: dist.gather @b0
// CHECK: graph.matmul
// CHECK-NEXT: dist.release @b0
func.func private @block0.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 0 : i64, graph.phase = "F"} {
  %w = graph.read @w : tensor<8x8xf32>
  %y = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @block0.W
// CHECK-NOT: dist.gather
// CHECK: graph.accumulate
// CHECK-NEXT: dist.reduce @b0 use 0
// CHECK-NEXT: return
func.func private @block0.W(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>) attributes {graph.block = 0 : i64, graph.phase = "W"} {
  %dw = graph.matmul %x, %dy {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  graph.accumulate @w.grad.0, %dw : tensor<8x8xf32>
  return
}
