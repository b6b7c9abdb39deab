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

// A remainder is of whole numbers; narrow ones are widened for it.
// CHECK-LABEL: @kernel2
// CHECK: arith.remf {{.*}} : f32
// ALL-LABEL: @kernel2
// ALL: scf.while
// ALL: arith.remui {{.*}} : i32
// ALL-NOT: arith.remf
func.func private @kernel2(%x: f32, %y: f32) -> f32 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = arith.remf %x, %y : f32
  return %0 : f32
}

// ALL-LABEL: @kernel3
// ALL: arith.extf {{.*}} : bf16 to f32
// ALL: arith.remui {{.*}} : i32
// ALL: arith.truncf {{.*}} : f32 to bf16
// ALL-NOT: arith.remf
func.func private @kernel3(%x: bf16, %y: bf16) -> bf16 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = arith.remf %x, %y : bf16
  return %0 : bf16
}

// ALL-LABEL: @kernel4
// ALL: arith.remui {{.*}} : i64
// ALL-NOT: arith.remf
func.func private @kernel4(%x: f64, %y: f64) -> f64 attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = arith.remf %x, %y : f64
  return %0 : f64
}
