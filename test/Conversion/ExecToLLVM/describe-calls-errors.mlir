// RUN: dsopt-opt %s -describe-calls -split-input-file -verify-diagnostics

func.func private @block0.F(%x: memref<4xf32>, %g: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{'exec.accumulate' op has no exec.flops, expected what blocks-to-segments counts}}
  exec.accumulate %x -> %g : memref<4xf32> -> memref<4xf32>
  return
}

// -----

llvm.func @kernel0(!llvm.ptr)
func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{'exec.launch' op launches @kernel0, expected a kernel that is not lowered yet}}
  exec.launch @kernel0 range 4 grain 1 (%x) -> (%x) {exec.flops = 4 : i64} : memref<4xf32> -> memref<4xf32>
  return
}
