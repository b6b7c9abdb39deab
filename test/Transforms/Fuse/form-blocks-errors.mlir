// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -form-blocks

// expected-error@+1 {{form-blocks expects a function @micro_batch or @evaluate with one body}}
module {
}

// -----

func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has no block and phase, expected both from build-backward or build-evaluation}}
  %0 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{it is made here}}
  %0 = graph.neg %x {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{in block 0 phase F uses a value of block 1 phase F, which runs later}}
  %1 = graph.neg %0 {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{returns what no block computes}}
func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
