// RUN: dsopt-opt %s -form-kernels -verify-diagnostics

func.func @no_lowering(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{'graph.cumsum' op has no lowering to a kernel or to a routine of the runtime}}
  %0 = graph.cumsum %x {axis = 1} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
