// RUN: dsopt-opt %s -split-input-file -keep-logits -verify-diagnostics

// expected-error@+1 {{keep-logits expects a function @forward with one body}}
module {
}

// -----

module {
  // expected-error@+1 {{compares no classes with labels by a cross-entropy: there are no logits that tokens would be chosen by}}
  func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
    %y = graph.tanh %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
}

// -----

module {
  // expected-error@+1 {{has logits of type 'tensor<6x8xf32>', expected [4, positions, classes]}}
  func.func @forward(%ids: tensor<4x2xi64>, %x: tensor<6x8xf32>, %labels: tensor<6xi64> {graph.label}) -> tensor<6xf32> {
    %y = graph.tanh %x : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %loss, %lse = graph.nll %y, %labels {ignore_index = -100 : i64} : (tensor<6x8xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
    return %loss : tensor<6xf32>
  }
}
