// RUN: dsopt-opt %s -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s
// RUN: dsopt-opt %s -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory | sed -e "/ evaluation position /,$ s/loss at 640/loss at 320/;/ evaluation position /,$ s/input.x at 384/input.x at 640/" | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MOVED

// Training and evaluation are programs of their own in one memory; what is persistent lies at one place
// in both. Evaluation runs all micro-batches forward, gathers nothing that is whole, updates nothing.

// CHECK: exec.program @position0 position 0 blocks [0, 1]
// CHECK: exec.memory @device device bytes [[BYTES:[0-9]+]]
// CHECK:         exec.buffer @b0.param at [[AT:[0-9]+]]
// CHECK:         exec.update
// CHECK: exec.program @evaluate0 evaluation position 0 blocks [0, 1]
// CHECK: exec.memory @device device bytes [[BYTES]]
// CHECK-NOT:     exec.buffer @seed
// CHECK:         exec.buffer @b0.param at [[AT]]
// CHECK-NOT:     exec.buffer @b0.grad
// CHECK:         exec.run @block0.E {{.*}} micro_batch 0 on @compute
// CHECK:         exec.run @block0.E {{.*}} micro_batch 1 on @compute
// CHECK-NOT:     exec.update
// CHECK:         exec.agree norms [] losses [@loss, @loss[1]]
// MOVED: error: 'exec.buffer' op of @evaluate0 lies at bytes

module attributes {dsopt.options = {dp = 1 : i64, micro_batches = 2 : i64, reduction_shards = 1 : i64}} {
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<64xf32> {exec.access = #exec.access<read>, exec.parameter = @w})
      attributes {dist.stage = 0 : i64, exec.segment, exec.temp_bytes = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0})
      attributes {dist.stage = 0 : i64, exec.segment, exec.temp_bytes = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.E(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<64xf32> {exec.access = #exec.access<read>, exec.parameter = @w})
      attributes {dist.stage = 0 : i64, exec.segment, exec.temp_bytes = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  func.func private @update.sgd(tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %0 = graph.run @block0.F(%x) : (tensor<64xf32>) -> tensor<f32>
    graph.run @block0.W(%x, %seed) : (tensor<64xf32>, tensor<f32>) -> ()
    return %0 : tensor<f32>
  }
  func.func @evaluate(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    %0 = graph.run @block0.E(%x) : (tensor<64xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @update(%scalars: tensor<16xf32>) {
    %w = graph.read @w : tensor<64xf32>
    %g = graph.read @w.grad.0 : tensor<64xf32>
    %n = graph.sgd %w, %g, %scalars {functions = #graph.functions<kernel = @update.sgd>} : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
    graph.write @w, %n : tensor<64xf32>
    return
  }
}
