// RUN: dsopt-opt %s -describe-calls -verify-diagnostics

func.func private @block0.F(%x: memref<4xf32>, %g: memref<4xf32>) attributes {exec.segment} {
  // expected-error @below {{'exec.accumulate' op has no exec.flops, expected what blocks-to-segments counts}}
  exec.accumulate %x -> %g : memref<4xf32> -> memref<4xf32>
  return
}
