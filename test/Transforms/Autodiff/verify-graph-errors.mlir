// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -verify-graph

// expected-error@+1 {{expected functions @micro_batch and @update after autodiff}}
module {
}

// -----

module attributes {graph.blocks = 2 : i64} {
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{has block 2 : i64, expected one of 2 blocks}}
    %0 = graph.neg %x {graph.block = 2 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update() { return }
}

// -----

module attributes {graph.blocks = 2 : i64} {
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{has phase none, expected F, B or W}}
    %0 = graph.neg %x {graph.block = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update() { return }
}

// -----

module attributes {graph.blocks = 2 : i64} {
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-note@+1 {{it is made here}}
    %0 = graph.neg %x {graph.block = 1 : i64, graph.phase = #graph.phase<W>} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error@+1 {{in block 0 phase B reads a value of block 1 phase W, which comes later}}
    %1 = graph.neg %0 {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @update() { return }
}

// -----

module attributes {graph.blocks = 1 : i64} {
  // expected-error@+1 {{has 0 updates, expected 1}}
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
  func.func @update() { return }
}

// -----

module attributes {graph.blocks = 1 : i64} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  // expected-error@+1 {{is a gradient into which nothing is accumulated}}
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
  func.func @update() { return }
}

// -----

module attributes {graph.blocks = 1 : i64} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
    graph.accumulate @w.grad.0, %x {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<4xf32>
    // expected-error@+1 {{is a second accumulation into @w.grad.0 in one micro-batch}}
    graph.accumulate @w.grad.0, %x {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<4xf32>
    return %x : tensor<4xf32>
  }
  func.func @update() { return }
}
