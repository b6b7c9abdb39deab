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

// -----

func.func @bitcast_to_another_width(%x: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{has 'tensor<4xf32>' as 'tensor<4xi64>', expected the same shape and width}}
  %0 = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

func.func @iota_of_no_axis() -> tensor<4x2xi32> {
  // expected-error @+1 {{counts along axis 2, expected 0 to 1}}
  %0 = graph.iota {axis = 2} : () -> tensor<4x2xi32>
  return %0 : tensor<4x2xi32>
}
