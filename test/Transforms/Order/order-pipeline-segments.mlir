// RUN: dsopt-opt %s -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s

// A phase of a block may be several segments: they run one after the other in the phase's place, and what goes
// from one to the next is a value like others.

// CHECK-LABEL: exec.program @position0
// CHECK: exec.run @block0.F.0 {{.*}} micro_batch 0 on @compute
// CHECK-NEXT: exec.run @block0.F.1 {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F.0 {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F.1 {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// CHECK-LABEL: exec.program @position1
// CHECK: exec.run @block1.B.0 {{.*}} micro_batch 0 on @compute
// CHECK-NEXT: exec.run @block1.B.1 {{.*}} micro_batch 0 on @compute
module attributes {dsopt.options = {pp = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F.0(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.F.1(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B.0(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.B.1(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %m0 = graph.run @block0.F.0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h0 = graph.run @block0.F.1(%m0) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<f32>
    %m1 = graph.run @block1.B.0(%h0, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g1 = graph.run @block1.B.1(%m1) : (tensor<4xf32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<f32>
  }
}
