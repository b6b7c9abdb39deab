// RUN: dsopt-opt %s -declare-grid=pp=2 -split-stages | FileCheck %s
// RUN: dsopt-opt %s -split-stages | FileCheck %s --check-prefix=ONE

// The stages' largest cost is as small as it can be: the wide product of block
// 2 weighs as much as blocks 0 and 1 together.

// CHECK: module attributes {dsopt.options = {pp = 2 : i64}}
// CHECK: func private @block0.F({{.*}}dist.stage = 0
// CHECK: func private @block1.F({{.*}}dist.stage = 0
// CHECK: func private @block2.F({{.*}}dist.stage = 1
// ONE-COUNT-3: dist.stage = 0
graph.parameter @w0 : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @w1 : tensor<8x8xf32> from "m" at 256 bytes 256
graph.parameter @w2 : tensor<8x16xf32> from "m" at 512 bytes 512
func.func private @block0.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w0 : tensor<8x8xf32>
  %y = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @block1.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w1 : tensor<8x8xf32>
  %y = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @block2.F(%x: tensor<4x8xf32>) -> tensor<4x16xf32> attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w2 : tensor<8x16xf32>
  %y = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
