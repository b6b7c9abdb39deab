// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -verify-kernels

func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error @below {{'graph.exp' op is in a block and in no kernel}}
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @block0.F(%x: tensor<4x2xf32>) -> tensor<2x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error @below {{'graph.transpose' op is in a block and in no kernel}}
  %0 = graph.transpose %x {perm = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// expected-error @below {{is a kernel and has no graph.range, expected what its loop runs over}}
func.func private @kernel0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.iterate = #graph.iteration<rows>} {
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @kernel0(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4, 4>} {
  // expected-error @below {{'graph.matmul' op is in a kernel and has no code of its own there}}
  %0 = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
func.func private @kernel0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  // expected-error @below {{'graph.read' op is in a kernel and has no code of its own there}}
  %0 = graph.read @w : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  return %x : tensor<4xf32>
}
func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'graph.exp' op is in no block, expected graph.run only}}
  %1 = graph.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
