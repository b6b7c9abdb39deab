// RUN: dsopt-opt %s -build-programs -split-input-file -verify-diagnostics

graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
graph.state @w.grad.0 : tensor<4xbf16> "grad" of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4>] elements 64 padded 64 ranks 1 zero 0 gradient bf16
func.func private @block0.W(memref<4xf32> {exec.access = "read"}, memref<4xf32> {exec.access = "update", exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = "W"}
func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) {
  // expected-error @below {{segment @block0.W has a gradient of 'f32', expected 'bf16', as bucket @b0 has}}
  graph.run @block0.W(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

// Forward reads what a micro-batch leaves of a buffer.
module attributes {dsopt.options = {dp = 2 : i64, micro_batches = 2 : i64}} {
  // expected-error @below {{forward reads buffer @mean and changes it, so that each micro-batch needs what the one before it left: expected one micro-batch a step, got 4 (2 dp x 2)}}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<f32>, tensor<3xf32> {graph.statistic = @mean, graph.momentum = 0.0 : f64, graph.sequential}) {
    %0 = graph.constant dense<0.0> : tensor<f32>
    %1 = graph.constant dense<0.0> : tensor<3xf32>
    return %0, %1 : tensor<f32>, tensor<3xf32>
  }
}
