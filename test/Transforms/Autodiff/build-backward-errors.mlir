// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -build-backward

module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %v = graph.reshape %w {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<2x2xf32>
    // expected-error@+1 {{operation 'graph.windows_place' has no gradient, needed for parameter @w}}
    %y = graph.windows_place %v {axis = 0, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 0>, graph.block = 0 : i64} : (tensor<2x2xf32>) -> tensor<3x2xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<3x2xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

module {
  // expected-warning@+1 {{parameter @u does not reach the loss; it is kept frozen}}
  graph.parameter @u : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %l = graph.reduce_sum %w {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 frozen
  // expected-error@+1 {{the loss depends on no trained parameter: -list-parameters says which are not trained, and why}}
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %l = graph.reduce_sum %w {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  // expected-error@+1 {{returns 'tensor<4xf32>', expected one loss of type 'tensor<f32>'}}
  func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    return %w : tensor<4xf32>
  }
}

// -----

module {
  graph.parameter @w : tensor<f32> from "m" at 0 bytes 4
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // expected-error@+1 {{has no graph.block, expected one from find-blocks}}
    %w = graph.read @w : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

// expected-error@+1 {{build-backward expects a function @forward with one body}}
module {
}
