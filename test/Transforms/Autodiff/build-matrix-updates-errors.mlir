// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -build-matrix-updates

func.func @update(%p: tensor<4xf32>, %s: tensor<16xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{sees whole matrices, but its parameter is 'tensor<4xf32>'}}
  %0:2 = graph.muon %p, %p, %p, %s : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}
