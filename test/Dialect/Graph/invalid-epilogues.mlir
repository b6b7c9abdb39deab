// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<2x8x4xf32>, %w: tensor<2x4x16xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{multiplies 'tensor<2x8x4xf32>' by 'tensor<2x4x16xf32>' to 'tensor<2x8x16xf32>', expected matrices}}
  %0 = graph.matmul_epilogue bias %x, %w, %b : (tensor<2x8x4xf32>, tensor<2x4x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<16x5xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{contracts 4 with 5 elements, expected equal sizes}}
  %0 = graph.matmul_epilogue bias %x, %w, %b {transpose_b} : (tensor<8x4xf32>, tensor<16x5xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{has a result of type 'tensor<8x15xf32>', expected a 8x16 matrix}}
  %0 = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> tensor<8x15xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{is given 'tensor<8xf32>', expected a value of shape [16]}}
  %0 = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<8xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{is given 'tensor<16xf32>', expected a value of shape [8, 16]}}
  %0 = graph.matmul_epilogue gelu_grad %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{keeps 'tensor<8x16xf32>', expected nothing but with gelu}}
  %0:2 = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) {
  // expected-error @below {{keeps 'tensor<16x8xf32>', expected the shape of its result}}
  %0:2 = graph.matmul_epilogue bias_gelu %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<16x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xf32>) {
  // expected-error @below {{has values of types 'tensor<8x4xbf16>' and 'tensor<16xf32>', expected one element type}}
  %0 = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x4xbf16>, tensor<4x16xbf16>, tensor<16xf32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x4096xbf16>, %w: tensor<4096x16xbf16>, %b: tensor<16xbf16>) {
  // expected-error @below {{adds up 4096 elements of 'bf16', expected sums of fp32 in one piece}}
  %0 = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x4096xbf16>, tensor<4096x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x12xf32>, %b: tensor<12xf32>) {
  // expected-error @below {{has 12 columns, expected a multiple of 8 where an activation's operand is kept or given}}
  %0:2 = graph.matmul_epilogue bias_gelu %x, %w, %b : (tensor<8x4xf32>, tensor<4x12xf32>, tensor<12xf32>) -> (tensor<8x12xf32>, tensor<8x12xf32>)
  return
}

// -----

func.func @f(%x: memref<8x4xf32>, %w: memref<4x16xf32>, %s: memref<8x16xf32, strided<[32, 1]>>, %y: memref<8x16xf32>) {
  // expected-error @below {{takes or keeps 'memref<8x16xf32, strided<[32, 1]>>', expected a contiguous value}}
  exec.gemm_epilogue gelu_grad %x, %w, %s -> %y : memref<8x4xf32>, memref<4x16xf32>, memref<8x16xf32, strided<[32, 1]>> -> memref<8x16xf32>
  return
}
