// RUN: dsopt-opt %s -unnest-kernels -verify-diagnostics

func.func private @segment()
module {
  // expected-error @below {{'func.func' op is left among the kernels, expected functions and constants of the LLVM dialect}}
  func.func private @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
      attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    return %x : tensor<8x64xf32>
  }
}
