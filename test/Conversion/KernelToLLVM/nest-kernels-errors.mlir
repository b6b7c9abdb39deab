// RUN: dsopt-opt %s -split-input-file -nest-kernels -verify-diagnostics

// expected-error @below {{module @step has no dsopt.target, expected what attach-target says}}
module @step {}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.target = #target} {
  func.func private @kernel0(%x: tensor<8xf32>) -> tensor<8xf32>
      attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    return %x : tensor<8xf32>
  }
  func.func @block0.F(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{is in a function of tensors, expected segments of all that call kernels}}
    %0 = graph.kernel @kernel0(%x) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
