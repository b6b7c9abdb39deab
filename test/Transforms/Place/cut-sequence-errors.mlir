// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-cut-sequence=shards=4 ranks=2"

module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<1x1x3x4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    %q = graph.mul %x, %w : (tensor<1x1x3x4xf32>, tensor<4xf32>) -> tensor<1x1x3x4xf32>
    // expected-error@+1 {{has 3 positions, fewer than the 4 sequence shards (-sp, -sequence-shards) that would have them}}
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3xf32>)
    %loss = graph.reduce_sum %a {axes = array<i64: 0, 1, 2, 3>} : (tensor<1x1x3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  // expected-error@+1 {{has no attention, whose rows sequence shards (-sp, -sequence-shards) would be of}}
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    %q = graph.mul %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %loss = graph.reduce_sum %q {axes = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Windows at every second position.
module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<1x1x8x4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    %q = graph.mul %x, %w : (tensor<1x1x8x4xf32>, tensor<4xf32>) -> tensor<1x1x8x4xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
    // expected-error@+1 {{'graph.windows' mixes positions, and says no rule by which sequence shards (-sp, -sequence-shards) could}}
    %p = graph.windows %a {axis = 2, counts = array<i64: 3>, kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 0>, value = 0.0 : f32} : (tensor<1x1x8x4xf32>) -> tensor<1x1x3x3x4xf32>
    %loss = graph.reduce_sum %p {axes = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x1x3x3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Windows that reach further than to the next shard.
module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<1x1x8x4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    %q = graph.mul %x, %w : (tensor<1x1x8x4xf32>, tensor<4xf32>) -> tensor<1x1x8x4xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
    // expected-error@+1 {{'graph.windows' mixes positions, and says no rule by which sequence shards (-sp, -sequence-shards) could}}
    %p = graph.windows %a {axis = 2, counts = array<i64: 5>, kernel = array<i64: 4>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 0>, value = 0.0 : f32} : (tensor<1x1x8x4xf32>) -> tensor<1x1x5x4x4xf32>
    %loss = graph.reduce_sum %p {axes = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x1x5x4x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Windows behind the last position, which are no shard's, are added up.
module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<1x1x8x4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    %q = graph.mul %x, %w : (tensor<1x1x8x4xf32>, tensor<4xf32>) -> tensor<1x1x8x4xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
    %p = graph.windows %a {axis = 2, counts = array<i64: 10>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 2>, value = 0.0 : f32} : (tensor<1x1x8x4xf32>) -> tensor<1x1x10x3x4xf32>
    // expected-error@+1 {{'graph.reduce_sum' mixes positions, and says no rule by which sequence shards (-sp, -sequence-shards) could}}
    %loss = graph.reduce_sum %p {axes = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x1x10x3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
