// RUN: dsopt-opt %s -verify-dist | FileCheck %s

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3
// CHECK: dist.gather @b0
func.func private @block0.F() -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = "F", dist.stage = 0 : i64} {
  dist.gather @b0
  %w = graph.read @w : tensor<64xf32>
  dist.release @b0
  return %w : tensor<64xf32>
}
