// RUN: dsopt-opt %s "-pass-pipeline=builtin.module(func.func(approximate-math))" | FileCheck %s

// A polynomial takes the place of the call, without flags.
// CHECK-LABEL: @kernel0
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK-NOT: fastmath
func.func private @kernel0(%x: f32) -> f32 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = math.exp %x : f32
  return %0 : f32
}
