// RUN: dsopt-opt %s -declare-grid=pp=2 -split-stages | FileCheck %s
// RUN: not dsopt-opt %s -declare-grid=pp=4 -split-stages 2>&1 | FileCheck %s --check-prefix=MANY

// Norms of a whole parameter are summed over the ranks of a stage: where a rule goes by them, blocks of its tiles are on one,
// though a cut between them would be of the least cost.

// CHECK: func private @block0.F({{.*}}dist.stage = 0
// CHECK: func private @block1.F({{.*}}dist.stage = [[STAGE:[01]]]
// CHECK: func private @block2.F({{.*}}dist.stage = [[STAGE]]
// CHECK: func private @block3.F({{.*}}dist.stage = 1
// MANY: error: cannot cut 4 blocks into 4 stages or chunks: lamb sees norms of whole parameters, so that blocks 1 to 2 with the tiles of @w stay on one; expected -pp of at most 3, or -tile-products=none
graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
graph.parameter @w.t0 : tensor<64xf32> from "m" at 0 bytes 256 {part_begin = 0 : i64, part_of = @w}
graph.parameter @w.t1 : tensor<64xf32> from "m" at 256 bytes 256 {part_begin = 64 : i64, part_of = @w}
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @block1.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w.t0 : tensor<64xf32>
  %y = graph.add %x, %w : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @block2.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w.t1 : tensor<64xf32>
  %y = graph.add %x, %w : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @block3.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @update(%s: tensor<16xf32>) {
  %pt0 = graph.read @w.t0 : tensor<64xf32>
  %t0:3 = graph.lamb %pt0, %pt0, %pt0, %pt0, %s : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  %pt1 = graph.read @w.t1 : tensor<64xf32>
  %t1:3 = graph.lamb %pt1, %pt1, %pt1, %pt1, %s : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}
