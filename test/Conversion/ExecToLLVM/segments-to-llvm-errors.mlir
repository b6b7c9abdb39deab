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

func.func private @block0.F(%x: memref<4x4xf64>) attributes {exec.segment} {
  // expected-error @below {{works on 'f64', expected f32}}
  exec.gemm %x, %x -> %x : memref<4x4xf64>, memref<4x4xf64> -> memref<4x4xf64>
  return
}
