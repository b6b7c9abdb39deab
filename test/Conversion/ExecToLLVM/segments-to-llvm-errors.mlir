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

func.func private @block0.F(%x: memref<4x4xf16>) attributes {exec.segment} {
  // expected-error @below {{works on 'f16', expected f32}}
  exec.gemm %x, %x -> %x : memref<4x4xf16>, memref<4x4xf16> -> memref<4x4xf16>
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
