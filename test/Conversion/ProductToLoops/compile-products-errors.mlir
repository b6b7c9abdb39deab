// RUN: dsopt-opt %s -split-input-file -compile-products -verify-diagnostics

// expected-error @below {{module @step has no dsopt.target, expected what attach-target says}}
module @step {}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
// expected-error @below {{has no module @kernels, expected nest-kernels before}}
module attributes {dsopt.target = #target} {}

// -----

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.target = #target} {
  module @kernels attributes {dsopt.target = #target} {}
  func.func @segment(%a: memref<8x4xf32, strided<[8, 2]>>, %b: memref<4x8xf32>, %c: memref<8x8xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // expected-error @below {{has a matrix of type 'memref<8x4xf32, strided<[8, 2]>>', expected contiguous rows or columns}}
    exec.gemm %a, %b -> %c : memref<8x4xf32, strided<[8, 2]>>, memref<4x8xf32> -> memref<8x8xf32>
    return
  }
}
