// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-place-values=shards=2 ranks=2"

// Columns that nothing sums.
module {
  graph.parameter @w : tensor<4x6xf32> from "m" at 0 bytes 96
  // expected-error@+1 {{has nothing that 2 tensor shards could cut (-tp, -tensor-shards): 'graph.softmax' sees whole what would be cut}}
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x6xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    %p = graph.softmax %y {axis = 1 : i64, graph.block = 0 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %loss = graph.reduce_sum %p {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x6xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// An odd number of columns.
module {
  graph.parameter @w : tensor<4x5xf32> from "m" at 0 bytes 80
  // expected-error@+1 {{could cut (-tp, -tensor-shards): 5 are not divided by 2}}
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x5xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x5xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A parameter that something else sees whole.
module {
  graph.parameter @w : tensor<4x4xf32> from "m" at 0 bytes 64
  // expected-error@+1 {{could cut (-tp, -tensor-shards): 'graph.softmax' sees whole what would be cut}}
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %table = graph.read @w {graph.block = 0 : i64} : tensor<4x4xf32>
    %p = graph.softmax %table {axis = 1 : i64, graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = graph.matmul %x, %p {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x4xf32>
    %y = graph.matmul %n, %w {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Parts that have no common size that is divided.
module {
  graph.parameter @a : tensor<4x4xf32> from "m" at 0 bytes 64
  // expected-error@+1 {{could cut (-tp, -tensor-shards): 4 in 4 parts are not divided by 2}}
  func.func @forward(%x: tensor<2x4xf32>, %y: tensor<2x5xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x4xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = graph.concat %0, %y {axis = 1 : i64, graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<2x9xf32>
    %loss = graph.reduce_sum %1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x9xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A statistic of what would be cut, whose running value is taken from an input.
module {
  graph.parameter @a : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @mean : tensor<4xf32> from "m" at 64 bytes 16 frozen {statistic}
  // expected-error@+1 {{could cut (-tp, -tensor-shards): an input would be cut}}
  func.func @forward(%x: tensor<2x4xf32>) -> (tensor<f32>, tensor<4xf32> {graph.statistic = @mean, graph.momentum = 0.9 : f64}) {
    %mean = graph.read @mean {graph.block = 0 : i64} : tensor<4xf32>
    %0 = graph.sub %x, %mean {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x4xf32>
    %1 = graph.matmul %0, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %own = graph.reduce_mean %1 {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<2x4xf32>) -> tensor<4xf32>
    %loss = graph.reduce_sum %1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss, %own : tensor<f32>, tensor<4xf32>
  }
}

// -----

// Windows over what would be cut: the channels that are normalized together.
module {
  graph.parameter @a : tensor<4x8xf32> from "m" at 0 bytes 128
  // expected-error@+1 {{'graph.windows' sees whole what would be cut}}
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x8xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = graph.windows %0 {axis = 1 : i64, counts = array<i64: 8>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32, graph.block = 0 : i64} : (tensor<2x8xf32>) -> tensor<2x8x3xf32>
    %loss = graph.reduce_sum %1 {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<2x8x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What a pad crops on one side and adds on the other is moved from shard to shard.
module {
  graph.parameter @a : tensor<4x8xf32> from "m" at 0 bytes 128
  // expected-error@+1 {{'graph.pad' sees whole what would be cut}}
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x8xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = graph.pad %0 {lows = array<i64: 0, 1>, highs = array<i64: 0, -1>, value = 0.0 : f32, graph.block = 0 : i64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %loss = graph.reduce_sum %1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
