// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func @sign_bits_of_other_rows(%x: tensor<4x31xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{has elements of 'tensor<4x31xf32>' and words of 'tensor<4xi32>', expected words of i32 and a last dimension of 32 beside theirs}}
  %0 = graph.sign_bits %x : (tensor<4x31xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @unpack_bits_of_other_words(%x: tensor<4xi64>) -> tensor<4x32xf32> {
  // expected-error @+1 {{has elements of 'tensor<4x32xf32>' and words of 'tensor<4xi64>', expected words of i32}}
  %0 = graph.unpack_bits %x : (tensor<4xi64>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
