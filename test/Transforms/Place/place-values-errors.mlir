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
