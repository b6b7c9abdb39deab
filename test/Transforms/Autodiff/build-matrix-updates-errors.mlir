// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -build-matrix-updates

func.func @update(%p: tensor<4xf32>, %s: tensor<16xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{sees whole matrices, but its parameter is 'tensor<4xf32>'}}
  %0:2 = graph.muon %p, %p, %p, %s : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @w.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
func.func private @block0.F() -> tensor<8x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w.shard.0 : tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}
func.func @update(%s: tensor<16xf32>) {
  %w = graph.read @w.shard.0 : tensor<8x4xf32>
  // expected-error@+1 {{adafactor sees whole parameters, but @w is cut in tensor shards: expected another optimizer, or -tp=1 and no -tensor-shards}}
  %u = graph.adafactor %w, %w, %s : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<16xf32>) -> tensor<8x4xf32>
  return
}
