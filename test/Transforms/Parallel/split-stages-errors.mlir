// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -declare-grid=pp=2 -split-stages

// expected-error@+1 {{cannot cut 1 blocks into 2 pipeline stages: -pp is at most 1 for this model}}
module {
  func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{block 0 has no forward function, but there are 2 blocks}}
module {
  func.func private @block1.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-note@+1 {{the first is here}}
func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  return %x : tensor<4xf32>
}
// expected-error@+1 {{is a second phase F of block 0}}
func.func private @b(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{is of block 0 and has no graph.phase}}
func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func private @block0.F(%x: tensor<f32>) -> tensor<f32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error@+1 {{'arith.addf' op says nothing of its flops, expected CostedOpInterface}}
  %y = arith.addf %x, %x : tensor<f32>
  return %y : tensor<f32>
}
func.func private @block1.F(%x: tensor<f32>) -> tensor<f32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  return %x : tensor<f32>
}
