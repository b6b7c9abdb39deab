// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=3 | FileCheck %s

// Tensor shards, of which ranks along tp have others, share no bucket with what all of these have alike; nor where
// one of them is read by several blocks.
// CHECK-DAG: dist.bucket @b0.shards : f32 of [0] [#dist.range<@w.shard.0, 0, 50>, #dist.range<@w.shard.1, 64, 50>] elements 128 padded 128 over [edp, ep, sp] distinct over [tp] zero 3
// CHECK-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@b, 0, 10>] elements 64 padded 128 over [edp, ep, sp] zero 3
// CHECK-DAG: dist.bucket @tied.e.shard.0 : f32 of [0, 1] [#dist.range<@e.shard.0, 0, 64>] elements 64 padded 128 over [edp, ep, sp] distinct over [tp] zero 3
graph.parameter @w : tensor<10x10xf32> from "m" at 0 bytes 400
graph.parameter @w.shard.0 : tensor<10x5xf32> from "m" at 0 bytes 200 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<5 every 10 step 10>}
graph.parameter @w.shard.1 : tensor<10x5xf32> from "m" at 0 bytes 200 {name = "w", part_of = @w, part_begin = 5 : i64, part_runs = #graph.runs<5 every 10 step 10>}
graph.parameter @b : tensor<10xf32> from "m" at 400 bytes 40
graph.parameter @e : tensor<64xf32> from "m" at 440 bytes 256
graph.parameter @e.shard.0 : tensor<64xf32> from "m" at 440 bytes 256 {name = "e", part_of = @e, part_begin = 0 : i64, part_runs = #graph.runs<64 every 64 step 64>}
func.func private @block0.F() -> (tensor<10x5xf32>, tensor<10x5xf32>, tensor<10xf32>, tensor<64xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.read @w.shard.0 : tensor<10x5xf32>
  %1 = graph.read @w.shard.1 : tensor<10x5xf32>
  %b = graph.read @b : tensor<10xf32>
  %e = graph.read @e.shard.0 : tensor<64xf32>
  return %0, %1, %b, %e : tensor<10x5xf32>, tensor<10x5xf32>, tensor<10xf32>, tensor<64xf32>
}
func.func private @block1.F() -> tensor<64xf32> attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %e = graph.read @e.shard.0 : tensor<64xf32>
  return %e : tensor<64xf32>
}
