// RUN: dsopt-opt %s -declare-grid=pp=2 -split-stages | FileCheck %s

// A kernel costs what its operations do, not what it writes: the gelu of block 2 weighs more than blocks 0
// and 1 together.

// CHECK: func private @block0.F({{.*}}dist.stage = 0
// CHECK: func private @block1.F({{.*}}dist.stage = 0
// CHECK: func private @block2.F({{.*}}dist.stage = 1
func.func private @cheap(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %0 = graph.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @dear(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %0 = graph.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @block0.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.kernel @cheap(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @block1.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.kernel @cheap(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @block2.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.kernel @dear(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
