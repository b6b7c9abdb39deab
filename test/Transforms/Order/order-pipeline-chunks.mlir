// RUN: dsopt-opt %s -order-pipeline | FileCheck %s
// RUN: dsopt-opt %s -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=WHOLE

// Interleaved 1F1B: blocks 0 and 2 at position 0, 1 and 3 at position 1. What position 0 has from block 0 it does
// not receive again for block 2, and what it sends is in the order in which position 1 wants it.

// WHOLE-LABEL: exec.program @position1
// CHECK-LABEL: exec.program @position0 position 0 blocks [0, 1, 2, 3]
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK-NEXT: exec.send {{.*}} tag "block0.F.0" micro_batch 0
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block1.F.0" micro_batch 0
// CHECK-NEXT: exec.send {{.*}} tag "block0.F.0" micro_batch 1
// CHECK: exec.run @block2.F {{.*}} micro_batch 0 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block1.F.0" micro_batch 1
// CHECK-NEXT: exec.send {{.*}} tag "block2.F.0" micro_batch 0
// CHECK: exec.run @block2.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block3.B.0" micro_batch 0
// CHECK-NEXT: exec.send {{.*}} tag "block2.F.0" micro_batch 1
// CHECK: exec.run @block2.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 3 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block3.B.0" micro_batch 1
// CHECK-NEXT: exec.send {{.*}} tag "block0.F.0" micro_batch 2
// CHECK: exec.run @block2.B {{.*}} micro_batch 1 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block1.F.0" micro_batch 2
// CHECK-NEXT: exec.send {{.*}} tag "block2.B.0" micro_batch 0
// CHECK: exec.run @block2.F {{.*}} micro_batch 2 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block1.B.0" micro_batch 0
// CHECK-NEXT: exec.send {{.*}} tag "block0.F.0" micro_batch 3
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK-NEXT: exec.recv {{.*}} tag "block1.F.0" micro_batch 3
// CHECK-LABEL: exec.program @position1 position 1 blocks [1, 2, 3, 4]
module attributes {dsopt.options = {pp = 2 : i64, micro_batches = 4 : i64, schedule = "interleaved"}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 1 : i64, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 1 : i64, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 2 : i64, dist.stage = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 2 : i64, dist.stage = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>}
  func.func private @block3.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 3 : i64, dist.stage = 1 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<F>}
  func.func private @block3.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 3 : i64, dist.stage = 1 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    %h2 = graph.run @block2.F(%h1, %h0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %h3 = graph.run @block3.F(%h2) : (tensor<4xf32>) -> tensor<f32>
    %g3 = graph.run @block3.B(%h2, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g2 = graph.run @block2.B(%h1, %g3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g1 = graph.run @block1.B(%h0, %g2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h3 : tensor<f32>
  }
}
