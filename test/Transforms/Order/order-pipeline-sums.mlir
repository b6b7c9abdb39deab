// RUN: dsopt-opt %s -split-input-file -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -expand-collectives -insert-waits -plan-memory -verify-exec | FileCheck %s

// What tensor shards add among the runs: parts to the ranks that add them, and the sums back, in forward and in
// backward, of each micro-batch. 256 elements divide by the granules of two ranks; 132 of backward are padded.
// Between stages values stay at their place along tp.
// CHECK: exec.communicator @tp over [tp]
// CHECK: exec.stream @tensor communication
// CHECK-LABEL: exec.program @position0
// CHECK: tensor_parallel = {{[1-9][0-9]*}}
// CHECK: exec.buffer @block0.F.0 at {{[0-9]+}} : memref<4x64xf32> activations
// CHECK: exec.buffer @block0.F.0.sum at {{[0-9]+}} : memref<4x64xf32> activations
// CHECK: exec.buffer @block0.F.0.sum.parts at {{[0-9]+}} : memref<256xf32> buffers slots 1
// CHECK: exec.buffer @block1.B.0.sum at {{[0-9]+}} : memref<4x33xf32> activations
// CHECK: exec.run @block0.F {{.*}} micro_batch 0 on @compute
// CHECK: exec.all_to_all @block0.F.0 to @block0.F.0.sum.parts bytes 512 tensor_parallel order 0 over @tp on @tensor
// CHECK: exec.wait {{.*}} on @compute
// CHECK: exec.add @block0.F.0.sum.parts, @block0.F.0.sum.parts+512 elements 128 : f32 on @compute
// CHECK: exec.gather @block0.F.0.sum.parts to @block0.F.0.sum{{(\[0\])?}} bytes 512 tensor_parallel order 1 over @tp on @tensor
// CHECK: exec.run @block0.F.1 [@block0.F.0.sum,
// CHECK: exec.send {{.*}} to 1 tag "block0.F.1.0" micro_batch 0 send_recv over @pp
// CHECK: exec.run @block0.F {{.*}} micro_batch 1 on @compute
// CHECK: exec.all_to_all {{.*}} tensor_parallel order
// CHECK-LABEL: exec.program @position1
// CHECK: exec.buffer @block1.B.0 at {{[0-9]+}} : memref<256xf32> activations slots 1 stride 1024 {payload = 528 : i64}
// CHECK: exec.buffer @block1.B.0.sum at {{[0-9]+}} : memref<256xf32> activations slots 1 stride 1024 {payload = 528 : i64}
// CHECK: exec.buffer @block1.B.0.sum.parts at {{[0-9]+}} : memref<256xf32> buffers slots 1 stride 1024 {payload = 528 : i64}
// CHECK: exec.run @block1.B {{.*}} micro_batch 0 on @compute
// CHECK: exec.all_to_all @block1.B.0 to @block1.B.0.sum.parts bytes 512 tensor_parallel
// CHECK: exec.gather @block1.B.0.sum.parts to @block1.B.0.sum bytes 512 tensor_parallel
// CHECK: exec.send @block1.B.0.sum bytes 528 to 0 tag "block1.B.0.sum" micro_batch 0
module attributes {dsopt.options = {pp = 2 : i64, tp = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 2]
  func.func private @block0.F(memref<4x64xf32> {exec.access = #exec.access<read>}, memref<4x64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.F.1(memref<4x64xf32> {exec.access = #exec.access<read>}, memref<4x33xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>, graph.part = 1 : i64}
  func.func private @block0.B(memref<4x64xf32> {exec.access = #exec.access<read>}, memref<4x33xf32> {exec.access = #exec.access<read>}, memref<4x64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4x33xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4x33xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4x33xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4x64xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %p = graph.run @block0.F(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %h = dist.all_reduce %p over [tp] : tensor<4x64xf32>
    %y = graph.run @block0.F.1(%h) : (tensor<4x64xf32>) -> tensor<4x33xf32>
    %loss = graph.run @block1.F(%y) : (tensor<4x33xf32>) -> tensor<f32>
    %q = graph.run @block1.B(%y, %seed) : (tensor<4x33xf32>, tensor<f32>) -> tensor<4x33xf32>
    %dy = dist.all_reduce %q over [tp] : tensor<4x33xf32>
    %dx = graph.run @block0.B(%h, %dy) : (tensor<4x64xf32>, tensor<4x33xf32>) -> tensor<4x64xf32>
    return %loss : tensor<f32>
  }
}

// -----

// Three ranks: an odd one is carried up. What one rank alone adds is there already.
// CHECK-LABEL: exec.program @evaluate0
// CHECK: exec.all_to_all @block0.E.0 to @block0.E.0.sum.parts bytes 128 tensor_parallel
// CHECK: exec.add @block0.E.0.sum.parts, @block0.E.0.sum.parts+128 elements 64 : bf16 on @compute
// CHECK: exec.add @block0.E.0.sum.parts, @block0.E.0.sum.parts+256 elements 64 : bf16 on @compute
// CHECK: exec.gather @block0.E.0.sum.parts to @block0.E.0.sum bytes 128 tensor_parallel
module attributes {dsopt.options = {tp = 3 : i64, micro_batches = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 3]
  func.func private @block0.E(memref<4xf32> {exec.access = #exec.access<read>}, memref<bf16> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  func.func private @block1.E(memref<bf16> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<E>}
  func.func @evaluate(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<f32> {
    %p = graph.run @block0.E(%x) : (tensor<4xf32>) -> tensor<bf16>
    %alone = dist.all_reduce %p over [sp] : tensor<bf16>
    %y = dist.all_reduce %alone over [tp] : tensor<bf16>
    %loss = graph.run @block1.E(%y) : (tensor<bf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
