// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=3 | FileCheck %s
// RUN: dsopt-opt %s -declare-grid=dp=1 -partition-zero=stage=3 | FileCheck %s --check-prefix=ONE

// Parameters start at multiples of 64 in the model's order; one that two blocks
// read is a bucket of its own; frozen ones are apart and have no state. Gradients have
// the type of their accumulators, which is said where it is not f32.

// What the pass is told is the module's option from then on.
// CHECK: module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}}
// CHECK-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 100>, #dist.range<@b, 128, 10>] elements 192 padded 256 over [edp, ep, sp] zero 3 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
// CHECK-DAG: dist.bucket @tied.e : f32 of [0, 1] [#dist.range<@e, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3 gradient bf16 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
// CHECK-DAG: dist.bucket @b1.frozen : f32 of [1] [#dist.range<@f, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3 frozen
// Running statistics are whole on every rank.
// CHECK-DAG: dist.bucket @b1.frozen.statistics : f32 of [1] [#dist.range<@r, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 0 frozen
// One that nothing reads is with the block that makes its new value.
// CHECK-DAG: dist.bucket @b0.frozen.statistics : f32 of [0] [#dist.range<@u, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0 frozen
// ONE: elements 192 padded 192 over [edp, ep, sp] zero 0
graph.parameter @w : tensor<10x10xf32> from "m" at 0 bytes 400
graph.parameter @e : tensor<128xf32> from "m" at 400 bytes 512
graph.parameter @b : tensor<10xf32> from "m" at 912 bytes 40
graph.parameter @f : tensor<64xf32> from "m" at 952 bytes 256 frozen
graph.parameter @r : tensor<64xf32> from "m" at 1208 bytes 256 frozen {statistic}
graph.parameter @u : tensor<128xf32> from "m" at 1464 bytes 512 frozen {statistic}
graph.state @w.grad.0 : tensor<10x10xf32> gradient of @w block 0
graph.state @w.m : tensor<10x10xf32> optimizer "m" of @w
graph.state @w.v : tensor<10x10xf32> optimizer "v" of @w
graph.state @e.grad.0 : tensor<128xbf16> gradient of @e block 0
graph.state @e.m : tensor<128xf32> optimizer "m" of @e
graph.state @e.v : tensor<128xf32> optimizer "v" of @e
graph.state @b.m : tensor<10xf32> optimizer "m" of @b
graph.state @b.v : tensor<10xf32> optimizer "v" of @b
func.func private @block0.F() -> (tensor<10x10xf32>, tensor<10xf32>, tensor<128xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w : tensor<10x10xf32>
  %b = graph.read @b : tensor<10xf32>
  %e = graph.read @e : tensor<128xf32>
  return %w, %b, %e : tensor<10x10xf32>, tensor<10xf32>, tensor<128xf32>
}
func.func private @block1.F() -> (tensor<128xf32>, tensor<64xf32>) attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %e = graph.read @e : tensor<128xf32>
  %f = graph.read @f : tensor<64xf32>
  return %e, %f : tensor<128xf32>, tensor<64xf32>
}
func.func private @block1.E() -> tensor<64xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<E>} {
  %r = graph.read @r : tensor<64xf32>
  return %r : tensor<64xf32>
}
func.func @micro_batch() -> (tensor<10x10xf32>, tensor<128xf32> {graph.statistic = @u, graph.momentum = 0.0 : f64}) {
  %0:3 = graph.run @block0.F() : () -> (tensor<10x10xf32>, tensor<10xf32>, tensor<128xf32>)
  return %0#0, %0#2 : tensor<10x10xf32>, tensor<128xf32>
}
