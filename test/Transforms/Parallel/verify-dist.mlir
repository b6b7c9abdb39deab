// RUN: dsopt-opt %s -verify-dist | FileCheck %s

// A gather may stand earlier than its run, and a reduction later.
module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
// CHECK-LABEL: @micro_batch
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: dist.gather @b0 [@w]
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
  dist.release %w : tensor<64xf32>
  return %y : tensor<64xf32>
}
}
