// RUN: dsopt-opt %s -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -expand-collectives -insert-waits -plan-memory -verify-exec | FileCheck %s

// Between sequence shards: slices are gathered, of sums each keeps its slice (added where it came), and slices are
// exchanged. None is padded, and all are counted by their axis.
// CHECK-LABEL: exec.program @position0
// CHECK: padding = 0 : i64,{{.*}}sequence_parallel = 768
// CHECK: exec.buffer @block0.F.0.sum at {{[0-9]+}} : memref<8x16xf32> activations
// CHECK: exec.buffer @block0.B.0.sum at {{[0-9]+}} : memref<128xf32> activations
// CHECK: exec.run @block0.F
// CHECK: exec.gather @block0.F.0 to @block0.F.0.sum bytes 256 sequence_parallel order 0 over @sp on @tensor
// CHECK: exec.all_to_all @block0.F.1.0 to @block0.F.1.0.sum bytes 256 sequence_parallel order 1 over @sp on @tensor
// CHECK: exec.all_to_all @block0.B.0 to @block0.B.0.sum bytes 256 sequence_parallel order
// CHECK: exec.add @block0.B.0.sum, @block0.B.0.sum+256 elements 64 : f32 on @compute
module attributes {dsopt.options = {sp = 2 : i64, micro_batches = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 2, tp = 1]
  func.func private @block0.F(memref<4x16xf32> {exec.access = #exec.access<read>}, memref<4x16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.F.1(memref<8x16xf32> {exec.access = #exec.access<read>}, memref<8x16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>, graph.part = 1 : i64}
  func.func private @block0.F.2(memref<8x16xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>, graph.part = 2 : i64}
  func.func private @block0.B(memref<8x16xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<8x16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block0.B.1(memref<4x16xf32> {exec.access = #exec.access<read>}, memref<4x16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>, graph.part = 1 : i64}
  func.func @micro_batch(%x: tensor<4x16xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %p = graph.run @block0.F(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %h = dist.all_gather %p over [sp] : tensor<4x16xf32> to tensor<8x16xf32>
    %q = graph.run @block0.F.1(%h) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = dist.all_to_all %q over [sp] : tensor<8x16xf32>
    %loss = graph.run @block0.F.2(%y) : (tensor<8x16xf32>) -> tensor<f32>
    %dy = graph.run @block0.B(%y, %seed) : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %dp = dist.reduce_scatter %dy over [sp] : tensor<8x16xf32> to tensor<4x16xf32>
    %dx = graph.run @block0.B.1(%dp) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %loss : tensor<f32>
  }
}
