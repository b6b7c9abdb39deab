// RUN: dsopt-opt %s "-pass-pipeline=builtin.module(func.func(approximate-math))" | FileCheck %s
// RUN: dsopt-opt %s "-pass-pipeline=builtin.module(func.func(approximate-math{all=true}))" | FileCheck %s --check-prefix=ALL

// A polynomial takes the place of the call, without flags.
// CHECK-LABEL: @kernel0
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK-NOT: fastmath
func.func private @kernel0(%x: f32) -> f32 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = math.exp %x : f32
  return %0 : f32
}

// What a library has stays, unless there is none.
// CHECK-LABEL: @kernel1
// CHECK: math.sin
// CHECK: math.asinh
// CHECK: math.powf
// ALL-LABEL: @kernel1
// ALL-NOT: math.{{sin|asinh|powf|log|exp}}
// ALL: math.copysign
// ALL-NOT: math.{{sin|asinh|powf|log|exp}}
func.func private @kernel1(%x: f32) -> f32 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = math.sin %x : f32
  %1 = math.asinh %0 : f32
  %2 = math.powf %1, %x : f32
  return %2 : f32
}
