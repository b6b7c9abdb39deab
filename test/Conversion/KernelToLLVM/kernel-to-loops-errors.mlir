// RUN: dsopt-opt %s -pass-pipeline='builtin.module(func.func(graph-to-linalg,kernel-to-loops))' -split-input-file -verify-diagnostics

// expected-error @below {{has a kernel over [4], but an operation over [8, 64]}}
func.func private @range(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %0 = graph.neg %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
