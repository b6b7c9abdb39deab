// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -declare-grid=dp=2 -partition-zero=stage=1

module attributes {dsopt.options = {compress_gradients = "onebit"}} {
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  // expected-error@+1 {{is a tensor shard, of which -compress-gradients=onebit makes no gradients yet: expected -tp=1 and no -tensor-shards}}
  graph.parameter @w.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
  func.func private @block0.F() -> tensor<8x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w.shard.0 : tensor<8x4xf32>
    return %w : tensor<8x4xf32>
  }
}

// -----

module attributes {dsopt.options = {optimizer = "onebit-adam", freeze_step = 3 : i64}} {
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  // expected-error@+1 {{is a tensor shard, which -optimizer=onebit-adam cannot compress behind its freeze yet: expected -tp=1 and no -tensor-shards}}
  graph.parameter @w.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
  func.func private @block0.F() -> tensor<8x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w.shard.0 : tensor<8x4xf32>
    return %w : tensor<8x4xf32>
  }
}

// -----

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @w.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
// expected-error@+1 {{is part of @w.shard.0, which is part of @w: expected tiles and shards of whole parameters alone}}
graph.parameter @t : tensor<4x4xf32> from "m" at 0 bytes 64 {part_of = @w.shard.0, part_begin = 0 : i64}
func.func private @block0.F() -> tensor<8x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w.shard.0 : tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}
