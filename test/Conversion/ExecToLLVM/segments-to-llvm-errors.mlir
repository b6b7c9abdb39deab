// RUN: dsopt-opt %s -segments-to-llvm -split-input-file -verify-diagnostics

func.func private @kernel0(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{launches @kernel0, expected a kernel that is lowered to the LLVM dialect}}
  exec.launch @kernel0 range 4 grain 1 (%x) -> (%x) : memref<4xf32> -> memref<4xf32>
  return
}

// -----

func.func private @block0.F(%x: memref<4x4xi32>) attributes {exec.segment} {
  // expected-error @below {{works on 'i32', expected f32}}
  exec.gemm %x, %x -> %x : memref<4x4xi32>, memref<4x4xi32> -> memref<4x4xi32>
  return
}

// -----

func.func private @block0.F(%q: memref<1x1x4x4xf32, strided<[16, 16, 1, 4]>>, %r: memref<1x1x4x4xf32>, %lse: memref<1x1x4xf32>, %w: memref<65536xi8>) attributes {exec.segment} {
  // expected-error @below {{has an operand of type 'memref<1x1x4x4xf32, strided<[16, 16, 1, 4]>>', expected contiguous rows of four dimensions}}
  exec.attention %q, %r, %r, %r, %lse, %w {scale = 1.0 : f64, threads = 1 : i64} : memref<1x1x4x4xf32, strided<[16, 16, 1, 4]>>, memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<1x1x4xf32>, memref<65536xi8>
  return
}

// -----

func.func private @block0.F(%r: memref<1x1x4x4xf32>, %lse: memref<1x1x4xf32>, %w: memref<16xi8>) attributes {exec.segment} {
  // expected-error @below {{has a workspace of 16 bytes, expected}}
  exec.attention %r, %r, %r, %r, %lse, %w {scale = 1.0 : f64, threads = 1 : i64} : memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<1x1x4xf32>, memref<16xi8>
  return
}

// -----

func.func private @block0.W(%d: memref<8x3xf32>, %i: memref<8xi32>, %e: memref<5x3xbf16>) attributes {exec.segment} {
  // expected-error @below {{has a workspace of 0 bytes, expected 64}}
  exec.scatter_add %d, %i -> %e {into_gradient} : memref<8x3xf32>, memref<8xi32> -> memref<5x3xbf16>
  return
}

// -----

func.func private @block0.W(%v: memref<4xbf16>, %g: memref<4xbf16>) attributes {exec.segment} {
  // expected-error @below {{adds 'bf16', expected f32}}
  exec.accumulate %v -> %g : memref<4xbf16> -> memref<4xbf16>
  return
}

// -----

llvm.func @kernel0(!llvm.ptr)
func.func private @block0.F(%x: memref<4x4xf32, strided<[8, 1]>>, %y: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{takes a buffer of type 'memref<4x4xf32, strided<[8, 1]>>', expected a contiguous one}}
  exec.launch @kernel0 range 4 grain 1 (%x) -> (%y) : memref<4x4xf32, strided<[8, 1]>> -> memref<4xf32>
  return
}

// -----

func.func private @block0.F(%x: memref<4x4xf32>, %y: memref<4x4xbf16>) attributes {exec.segment} {
  // expected-error @below {{multiplies 'memref<4x4xf32>' by 'memref<4x4xbf16>' to 'memref<4x4xf32>', expected f32, f64, or bf16 or f16 to itself or f32}}
  exec.gemm %x, %y -> %x : memref<4x4xf32>, memref<4x4xbf16> -> memref<4x4xf32>
  return
}

// -----

func.func private @block0.F(%x: memref<4x4xf32, strided<[8, 2]>>, %y: memref<4x4xf32>) attributes {exec.segment} {
  // expected-error @below {{has a matrix of type 'memref<4x4xf32, strided<[8, 2]>>', expected contiguous rows or columns}}
  exec.gemm %x, %y -> %y : memref<4x4xf32, strided<[8, 2]>>, memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----

// Dimensions whose strides never fit together.
func.func private @block0.F(%x: memref<2x2x2x2x2x4x4xf32, strided<[1408, 640, 288, 128, 48, 4, 1]>>, %y: memref<2x2x2x2x2x4x4xf32>) attributes {exec.segment} {
  // expected-error @below {{has 5 leading dimensions that are no one dimension, expected at most 4}}
  exec.gemm %x, %y -> %y : memref<2x2x2x2x2x4x4xf32, strided<[1408, 640, 288, 128, 48, 4, 1]>>, memref<2x2x2x2x2x4x4xf32> -> memref<2x2x2x2x2x4x4xf32>
  return
}

// -----

func.func private @block0.B(%x: memref<4x8xf32>, %w: memref<8x9xbf16>, %l: memref<4xi32>, %g: memref<f32>, %s: memref<4096xi8>) attributes {exec.segment} {
  // expected-error @below {{works on 'memref<4x8xf32>' and 'memref<8x9xbf16>', expected one element type}}
  exec.linear_nll %x, %w, %l, %g, %g, %s {ignore_index = -100 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<4x8xf32>, memref<8x9xbf16>, memref<4xi32>, memref<f32>, memref<f32>, memref<4096xi8>
  return
}

// -----

func.func private @block0.B(%x: memref<4x8xf32>, %w: memref<8x9xf32>, %l: memref<4xi32>, %g: memref<f32>, %s: memref<64xi8>) attributes {exec.segment} {
  // expected-error @below {{'exec.linear_nll' op has a workspace of 64 bytes, expected 144}}
  exec.linear_nll %x, %w, %l, %g, %g, %s {ignore_index = -100 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<4x8xf32>, memref<8x9xf32>, memref<4xi32>, memref<f32>, memref<f32>, memref<64xi8>
  return
}

// -----

func.func private @block0.W(%d: memref<8x3xf32>, %i: memref<8xi32>, %e: memref<5x3xf32>) attributes {exec.segment} {
  // expected-error @below {{has a workspace of 0 bytes, expected 64}}
  exec.scatter_add %d, %i -> %e {sums} : memref<8x3xf32>, memref<8xi32> -> memref<5x3xf32>
  return
}

// -----

func.func private @block0.W(%d: memref<7x3xf32>, %i: memref<8xi32>, %e: memref<5x3xf32>) attributes {exec.segment} {
  // expected-error @below {{has rows of 21 elements, expected 8 rows of 3}}
  exec.scatter_add %d, %i -> %e : memref<7x3xf32>, memref<8xi32> -> memref<5x3xf32>
  return
}

// -----

func.func private @block0.F(%l: memref<5x2x3xf32>, %t: memref<2x2xi32>, %n: memref<2xi32>, %w: memref<1xi8>, %s: memref<2xf32>) attributes {exec.segment} {
  // expected-error @below {{'exec.ctc' op has a workspace of 1 bytes, expected}}
  exec.ctc %l, %t, %n, %n, %w, %s {blank = 0 : i64} : memref<5x2x3xf32>, memref<2x2xi32>, memref<2xi32>, memref<2xi32>, memref<1xi8>, memref<2xf32>
  return
}

// -----

func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{'memref.dealloc' op is in a segment, expected operations of the exec dialect}}
  memref.dealloc %x : memref<4xf32>
  return
}

// -----

// expected-error @below {{has 2 blocks, expected one}}
func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
  llvm.br ^next
^next:
  return
}

// -----

// expected-error @below {{has a resource of 4 bytes, expected 16}}
memref.global constant @table : memref<4xf32> = dense_resource<short>
{-#
  dialect_resources: {builtin: {short: "0x0400000000000000"}}
#-}

// -----

// expected-error @below {{has a value of an unknown kind, expected dense elements}}
memref.global constant @table : memref<4xf32> = sparse<[[0]], [1.0]>

// -----

module @kernels {
  llvm.func @block0.F(!llvm.ptr)
}
func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{launches @kernels::@block0.F, expected no other symbol of that name in the module of the segments}}
  exec.launch @kernels::@block0.F range 4 grain 1 (%x) -> (%x) : memref<4xf32> -> memref<4xf32>
  return
}
