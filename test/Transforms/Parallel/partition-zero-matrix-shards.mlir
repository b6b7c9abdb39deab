// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero='stage=1 reduce-bucket-size=100' | FileCheck %s

// The shards of a matrix that an update sees whole are in one bucket, whatever its size and whoever reads them.
// CHECK: dist.bucket @b0.matrices.shards : f32 of [0] [#dist.range<@a.shard.0, 0, 32>, #dist.range<@a.shard.1, 64, 32>] elements 128 padded 128 {{.*}} distinct over [tp]
// CHECK: dist.bucket @b0.matrices.shards.1 : f32 of [0] [#dist.range<@w.shard.0, 0, 64>, #dist.range<@w.shard.1, 64, 64>] elements 128 padded 128 {{.*}} distinct over [tp]
// CHECK: dist.bucket @tied.t.matrices : f32 of [0, 1] [#dist.range<@t.shard.0, 0, 32>, #dist.range<@t.shard.1, 64, 32>] {{.*}} distinct over [tp]
graph.parameter @a : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @a.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "a", part_of = @a, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
graph.parameter @a.shard.1 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "a", part_of = @a, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
graph.parameter @w : tensor<16x8xf32> from "m" at 256 bytes 512
graph.parameter @w.shard.0 : tensor<16x4xf32> from "m" at 256 bytes 256 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
graph.parameter @w.shard.1 : tensor<16x4xf32> from "m" at 256 bytes 256 {name = "w", part_of = @w, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
graph.parameter @t : tensor<8x8xf32> from "m" at 768 bytes 256
graph.parameter @t.shard.0 : tensor<8x4xf32> from "m" at 768 bytes 128 {name = "t", part_of = @t, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
graph.parameter @t.shard.1 : tensor<8x4xf32> from "m" at 768 bytes 128 {name = "t", part_of = @t, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
func.func private @block0.F() -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %a0 = graph.read @a.shard.0 : tensor<8x4xf32>
  %a1 = graph.read @a.shard.1 : tensor<8x4xf32>
  %w0 = graph.read @w.shard.0 : tensor<16x4xf32>
  %w1 = graph.read @w.shard.1 : tensor<16x4xf32>
  %t0 = graph.read @t.shard.0 : tensor<8x4xf32>
  %t1 = graph.read @t.shard.1 : tensor<8x4xf32>
  return %a0, %a1, %w0, %w1, %t0, %t1 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @block1.F() -> (tensor<8x4xf32>, tensor<8x4xf32>) attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.read @t.shard.0 : tensor<8x4xf32>
  %1 = graph.read @t.shard.1 : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func @update(%s: tensor<16xf32>) {
  %a0 = graph.read @a.shard.0 : tensor<8x4xf32>
  %au0:2 = graph.muon %a0, %a0, %a0, %s {functions = #graph.functions<matrix = @muon.8x8.of.2>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<16xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %a1 = graph.read @a.shard.1 : tensor<8x4xf32>
  %au1:2 = graph.muon %a1, %a1, %a1, %s {functions = #graph.functions<matrix = @muon.8x8.of.2>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<16xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %w0 = graph.read @w.shard.0 : tensor<16x4xf32>
  %wu0:2 = graph.muon %w0, %w0, %w0, %s {functions = #graph.functions<matrix = @muon.16x8.of.2>} : (tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
  %w1 = graph.read @w.shard.1 : tensor<16x4xf32>
  %wu1:2 = graph.muon %w1, %w1, %w1, %s {functions = #graph.functions<matrix = @muon.16x8.of.2>} : (tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
  %t0 = graph.read @t.shard.0 : tensor<8x4xf32>
  %tu0:2 = graph.muon %t0, %t0, %t0, %s {functions = #graph.functions<matrix = @muon.8x8.of.2>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<16xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %t1 = graph.read @t.shard.1 : tensor<8x4xf32>
  %tu1:2 = graph.muon %t1, %t1, %t1, %s {functions = #graph.functions<matrix = @muon.8x8.of.2>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<16xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return
}
