// RUN: dsopt-opt %s -graph-to-linalg -split-input-file -verify-diagnostics

func.func private @constant() -> tensor<2xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
  // expected-error @below {{is no splat; a kernel takes it as an argument}}
  %0 = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @product(%x: tensor<2x2xf32>) -> tensor<2x2xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 2>} {
  // expected-error @below {{is a routine of the runtime or a view; it does not belong in a kernel}}
  %0 = graph.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
