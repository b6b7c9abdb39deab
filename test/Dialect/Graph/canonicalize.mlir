// Identities that are exact, and what must not fold.
// RUN: dsopt-opt %s -canonicalize | FileCheck %s

graph.parameter @w : tensor<2x3xf32> from "m.data" at 0 bytes 24

// CHECK-LABEL: @reshapes
// CHECK-NEXT: %[[R:.*]] = graph.reshape %arg0 : (tensor<2x6xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: return %[[R]], %arg0
func.func @reshapes(%x: tensor<2x6xf32>) -> (tensor<4x3xf32>, tensor<2x6xf32>) {
  %0 = graph.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
  %1 = graph.reshape %0 : (tensor<12xf32>) -> tensor<4x3xf32>
  %2 = graph.reshape %0 : (tensor<12xf32>) -> tensor<2x6xf32>
  return %1, %2 : tensor<4x3xf32>, tensor<2x6xf32>
}

// CHECK-LABEL: @transposes
// CHECK-NEXT: %[[T:.*]] = graph.transpose %arg0 {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return %[[T]], %arg0, %arg0
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = graph.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = graph.transpose %0 {perm = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %2 = graph.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %3 = graph.transpose %x {perm = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1, %2, %3 : tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: @expands
// CHECK-NEXT: %[[E:.*]] = graph.expand %arg0 : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return %[[E]], %arg0
func.func @expands(%x: tensor<2x1xf32>) -> (tensor<4x2x3xf32>, tensor<2x1xf32>) {
  %0 = graph.expand %x : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = graph.expand %0 : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  %2 = graph.expand %x : (tensor<2x1xf32>) -> tensor<2x1xf32>
  return %1, %2 : tensor<4x2x3xf32>, tensor<2x1xf32>
}

// CHECK-LABEL: @wholes
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %arg0
func.func @wholes(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = graph.slice_grad %x {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = graph.pad %x {lows = array<i64: 0, 0>, highs = array<i64: 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = graph.concat %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = graph.cast %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = graph.reduce_mean %x {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// A slice of equal shape may reverse, a crop may be undone by a pad.
// CHECK-LABEL: @not_wholes
// CHECK-NEXT: graph.slice
// CHECK-NEXT: graph.pad
func.func @not_wholes(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = graph.slice %x {starts = array<i64: 2>, sizes = array<i64: 3>, steps = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = graph.pad %x {lows = array<i64: -1>, highs = array<i64: 1>, value = 0.0 : f32} : (tensor<3xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: @exact
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg1, %arg1
func.func @exact(%x: tensor<2x3xf32>, %i: tensor<3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xi64>, tensor<3xi64>) {
  %one = graph.constant dense<1.0> : tensor<f32>
  %zero = graph.constant dense<0> : tensor<i64>
  %0 = graph.mul %x, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = graph.div %x, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = graph.pow %x, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = graph.add %zero, %i : (tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  %4 = graph.sub %i, %zero : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  return %0, %1, %2, %3, %4 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xi64>, tensor<3xi64>
}

// -0 + 0 is 0, inf * 0 is NaN; a factor of another shape broadcasts.
// CHECK-LABEL: @inexact
// CHECK: graph.add
// CHECK: graph.mul
// CHECK: graph.mul
func.func @inexact(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %ones = graph.constant dense<1.0> : tensor<2x3xf32>
  %0 = graph.add %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = graph.mul %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = graph.mul %x, %ones : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2 : tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @logic
// CHECK-NEXT: %[[F:.*]] = graph.constant dense<false> : tensor<3xi1>
// CHECK-NEXT: return %arg0, %[[F]], %arg0, %arg0, %arg1, %arg2
func.func @logic(%b: tensor<3xi1>, %x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) {
  %t = graph.constant dense<true> : tensor<i1>
  %f = graph.constant dense<false> : tensor<i1>
  %0 = graph.and %b, %t : (tensor<3xi1>, tensor<i1>) -> tensor<3xi1>
  %1 = graph.and %f, %b : (tensor<i1>, tensor<3xi1>) -> tensor<3xi1>
  %2 = graph.or %f, %b : (tensor<i1>, tensor<3xi1>) -> tensor<3xi1>
  %3 = graph.not %b : (tensor<3xi1>) -> tensor<3xi1>
  %4 = graph.not %3 : (tensor<3xi1>) -> tensor<3xi1>
  %5 = graph.where %t, %x, %y : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %6 = graph.where %f, %x, %y : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0, %1, %2, %4, %5, %6 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>
}

// A parameter is no constant; unused reads vanish.
// CHECK-LABEL: @parameter
// CHECK-NEXT: %[[W:.*]] = graph.read @w
// CHECK-NEXT: %[[N:.*]] = graph.neg %[[W]]
// CHECK-NEXT: return %[[N]]
func.func @parameter() -> tensor<2x3xf32> {
  %w = graph.read @w : tensor<2x3xf32>
  %unused = graph.read @w : tensor<2x3xf32>
  %0 = graph.neg %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Stopped once is stopped; a constant has no gradient.
// CHECK-LABEL: @stops
// CHECK-DAG: %[[C:.*]] = graph.constant dense<1.000000e+00>
// CHECK-DAG: %[[S:.*]] = graph.stop_gradient %arg0
// CHECK: return %[[S]], %[[C]]
func.func @stops(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = graph.constant dense<1.0> : tensor<2xf32>
  %0 = graph.stop_gradient %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = graph.stop_gradient %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = graph.stop_gradient %c : (tensor<2xf32>) -> tensor<2xf32>
  return %1, %2 : tensor<2xf32>, tensor<2xf32>
}

// Two calls of a function have a gradient each, which need not be linear.
// CHECK-LABEL: @calls_of_one_function
// CHECK-COUNT-2: graph.custom_gradient
func.func @calls_of_one_function(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = graph.custom_gradient 0 of(%x : tensor<2xf32>) is(%x : tensor<2xf32>) saved() {
  ^bb0(%g: tensor<2xf32>):
    graph.yield %g : tensor<2xf32>
  } -> tensor<2xf32>
  %1 = graph.custom_gradient 1 of(%x : tensor<2xf32>) is(%x : tensor<2xf32>) saved() {
  ^bb0(%g: tensor<2xf32>):
    graph.yield %g : tensor<2xf32>
  } -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
