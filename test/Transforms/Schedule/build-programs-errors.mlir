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
