// RUN: split-file %s %t
// RUN: dsopt-opt %t/s2m4.mlir -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %t/s2m4.mlir
// RUN: dsopt-opt %t/s4m8.mlir -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %t/s4m8.mlir
// RUN: dsopt-opt %t/s4m3.mlir -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %t/s4m3.mlir
// RUN: dsopt-opt %t/s3m10.mlir -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %t/s3m10.mlir
// RUN: dsopt-opt %t/s2m4.mlir -order-pipeline=schedule=gpipe -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %t/s2m4.mlir --check-prefix=GPIPE

// 1F1B starts min(S - s, M) micro-batches on stage s of S before the first backward.
// GPipe starts all M; backward ascends too.

//--- s2m4.mlir
// CHECK-LABEL: exec.program @position0
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 3 on @compute
// CHECK-LABEL: exec.program @position1
// CHECK: exec.run @block1.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 3 on @compute
// GPIPE: dsopt.options = {{.*}}schedule = "gpipe"
// GPIPE-LABEL: exec.program @position0
// GPIPE: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// GPIPE: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// GPIPE: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// GPIPE: exec.run @block0.F {{.*}} micro_batch 3 on @compute
// GPIPE: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// GPIPE: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// GPIPE: exec.run @block0.B {{.*}} micro_batch 2 on @compute
// GPIPE: exec.run @block0.B {{.*}} micro_batch 3 on @compute
// GPIPE-LABEL: exec.program @position1
// GPIPE: exec.run @block1.F {{.*}} micro_batch 0 on @compute
// GPIPE: exec.run @block1.F {{.*}} micro_batch 1 on @compute
// GPIPE: exec.run @block1.F {{.*}} micro_batch 2 on @compute
// GPIPE: exec.run @block1.F {{.*}} micro_batch 3 on @compute
// GPIPE: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// GPIPE: exec.run @block1.B {{.*}} micro_batch 1 on @compute
// GPIPE: exec.run @block1.B {{.*}} micro_batch 2 on @compute
// GPIPE: exec.run @block1.B {{.*}} micro_batch 3 on @compute
module attributes {dsopt.options = {pp = 2 : i64, micro_batches = 4 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<f32>
    %g1 = graph.run @block1.B(%h0, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<f32>
  }
}

//--- s4m8.mlir
// CHECK-LABEL: exec.program @position0
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 7 on @compute
// CHECK-LABEL: exec.program @position1
// CHECK: exec.run @block1.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 7 on @compute
// CHECK-LABEL: exec.program @position2
// CHECK: exec.run @block2.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 7 on @compute
// CHECK-LABEL: exec.program @position3
// CHECK: exec.run @block3.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 7 on @compute
module attributes {dsopt.options = {pp = 4 : i64, micro_batches = 8 : i64}} {
  dist.grid @grid [pp = 4, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>}
  func.func private @block3.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 3 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<F>}
  func.func private @block3.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 3 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    %h2 = graph.run @block2.F(%h1) : (tensor<4xf32>) -> tensor<4xf32>
    %h3 = graph.run @block3.F(%h2) : (tensor<4xf32>) -> tensor<f32>
    %g3 = graph.run @block3.B(%h2, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g2 = graph.run @block2.B(%h1, %g3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g1 = graph.run @block1.B(%h0, %g2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h3 : tensor<f32>
  }
}

//--- s4m3.mlir
// CHECK-LABEL: exec.program @position0
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 2 on @compute
// CHECK-LABEL: exec.program @position1
// CHECK: exec.run @block1.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 2 on @compute
// CHECK-LABEL: exec.program @position2
// CHECK: exec.run @block2.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 2 on @compute
// CHECK-LABEL: exec.program @position3
// CHECK: exec.run @block3.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block3.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block3.B {{.*}} micro_batch 2 on @compute
module attributes {dsopt.options = {pp = 4 : i64, micro_batches = 3 : i64}} {
  dist.grid @grid [pp = 4, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>}
  func.func private @block3.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 3 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<F>}
  func.func private @block3.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 3 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    %h2 = graph.run @block2.F(%h1) : (tensor<4xf32>) -> tensor<4xf32>
    %h3 = graph.run @block3.F(%h2) : (tensor<4xf32>) -> tensor<f32>
    %g3 = graph.run @block3.B(%h2, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g2 = graph.run @block2.B(%h1, %g3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g1 = graph.run @block1.B(%h0, %g2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h3 : tensor<f32>
  }
}

//--- s3m10.mlir
// CHECK-LABEL: exec.program @position0
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block0.F {{.*}} micro_batch 9 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block0.B {{.*}} micro_batch 9 on @compute
// CHECK-LABEL: exec.program @position1
// CHECK: exec.run @block1.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block1.F {{.*}} micro_batch 9 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block1.B {{.*}} micro_batch 9 on @compute
// CHECK-LABEL: exec.program @position2
// CHECK: exec.run @block2.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 1 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 2 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 3 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 4 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 5 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 6 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 7 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 8 on @compute
// CHECK: exec.run @block2.F {{.*}} micro_batch 9 on @compute
// CHECK: exec.run @block2.B {{.*}} micro_batch 9 on @compute
module attributes {dsopt.options = {pp = 3 : i64, micro_batches = 10 : i64}} {
  dist.grid @grid [pp = 3, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    %h2 = graph.run @block2.F(%h1) : (tensor<4xf32>) -> tensor<f32>
    %g2 = graph.run @block2.B(%h1, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g1 = graph.run @block1.B(%h0, %g2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h2 : tensor<f32>
  }
}
