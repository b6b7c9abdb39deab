// Matrix products and convolutions. One message says what was got and what was expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func @matmul_rank(%a: tensor<3xf32>, %x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.matmul' op has operands of types 'tensor<3xf32>' and 'tensor<2x3xf32>', expected equal ranks of at least 2}}
  %0 = graph.matmul %a, %x : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @matmul_type(%x: tensor<2x3xf32>, %a: tensor<3x2xf64>) {
  // expected-error @below {{'graph.matmul' op has operands of element types 'f32' and 'f64', expected equal ones}}
  %0 = graph.matmul %x, %a : (tensor<2x3xf32>, tensor<3x2xf64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @matmul_batch(%a: tensor<2x3x4xf32>, %b: tensor<1x4x3xf32>) {
  // expected-error @below {{'graph.matmul' op has operands of types 'tensor<2x3x4xf32>' and 'tensor<1x4x3xf32>', expected equal leading dimensions}}
  %0 = graph.matmul %a, %b : (tensor<2x3x4xf32>, tensor<1x4x3xf32>) -> tensor<2x3x3xf32>
  return
}

// -----

func.func @matmul_contraction(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.matmul' op contracts 3 with 2 elements, expected equal sizes}}
  %0 = graph.matmul %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @part_contracts(%x: tensor<8x2048xf32>, %w: tensor<2047x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op contracts 2048 with 2047 elements, expected equal sizes}}
  %0 = graph.matmul_part %x, %w {whole = array<i64: 8, 3, 5000>} : (tensor<8x2048xf32>, tensor<2047x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @part_cuts(%x: tensor<8x2048xf32>, %w: tensor<2048x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op is the part 8x3x2048 of a product [16, 3, 5000], expected one that is cut along one dimension}}
  %0 = graph.matmul_part %x, %w {whole = array<i64: 16, 3, 5000>} : (tensor<8x2048xf32>, tensor<2048x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @part_columns(%x: tensor<8x3xf32>, %w: tensor<2048x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op has a result of type 'tensor<8x2048xf32>', expected 'tensor<8x2952xf32>'}}
  %0 = graph.matmul_part %x, %w {transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<2048x3xf32>) -> tensor<8x2048xf32>
  return
}

// -----

func.func @part_addend(%x: tensor<8x2048xbf16>, %w: tensor<2048x3xbf16>, %s: tensor<8x3xbf16>) {
  // expected-error @below {{'graph.matmul_part' op adds to 'tensor<8x3xbf16>', expected fp32 of the result's shape}}
  %0 = graph.matmul_part %x, %w, %s {whole = array<i64: 8, 3, 5000>} : (tensor<8x2048xbf16>, tensor<2048x3xbf16>, tensor<8x3xbf16>) -> tensor<8x3xbf16>
  return
}

// -----

func.func @part_adds_nothing(%x: tensor<8x3xf32>, %w: tensor<2048x3xf32>, %s: tensor<8x2952xf32>) {
  // expected-error @below {{'graph.matmul_part' op adds to 'tensor<8x2952xf32>', expected nothing where all is contracted}}
  %0 = graph.matmul_part %x, %w, %s {transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<2048x3xf32>, tensor<8x2952xf32>) -> tensor<8x2952xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xbf16>) {
  // expected-error @below {{has values of types 'tensor<2x3x5x5xf32>' and 'tensor<4x3x3x3xbf16>', expected one element type}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xbf16>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{convolves 'tensor<2x3x5x5xf32>' with 'tensor<4x3x3x3xf32>' to 'tensor<2x4x5x4xf32>' (strides [1, 1], dilations [1, 1], pads [1, 1], 1 groups), expected as many places as windows fit between equal pads}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected batches and channels that fit}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 3 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected strides and dilations of 1 or more, and pads of 0 or more}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected an entry of strides, dilations and pads for each dimension that is moved over}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error @below {{expected x, w and y of one rank from 3 to 5}}
  %0 = graph.convolution forward %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, groups = 1 : i64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return
}
