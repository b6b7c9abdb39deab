// RUN: dsopt-opt %s -flatten-rows -canonicalize | FileCheck %s

// From a product's rows to the next product's no view is left.
// CHECK-LABEL: @between
// CHECK-NOT: graph.reshape
// CHECK: graph.add {{.*}} -> tensor<64x256xf32>
// CHECK-NEXT: graph.reduce_sum {{.*}} {axes = array<i64: 1>, keepdims} {{.*}} -> tensor<64x1xf32>
// CHECK-NEXT: graph.sub {{.*}} -> tensor<64x256xf32>
// CHECK-NEXT: return
func.func @between(%x: tensor<64x256xf32>, %b: tensor<1x1x256xf32>) -> tensor<64x256xf32> {
  %s = graph.reshape %x : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
  %c = graph.constant dense<1.0> : tensor<f32>
  %0 = graph.add %s, %c : (tensor<2x32x256xf32>, tensor<f32>) -> tensor<2x32x256xf32>
  %1 = graph.reduce_sum %0 {axes = array<i64: 2>, keepdims} : (tensor<2x32x256xf32>) -> tensor<2x32x1xf32>
  %2 = graph.sub %0, %1 : (tensor<2x32x256xf32>, tensor<2x32x1xf32>) -> tensor<2x32x256xf32>
  %3 = graph.reshape %2 : (tensor<2x32x256xf32>) -> tensor<64x256xf32>
  return %3 : tensor<64x256xf32>
}

// A sum over all that was split is a sum over one dimension.
// CHECK-LABEL: @columns
// CHECK: graph.reduce_sum %arg0 {axes = array<i64: 0>} : (tensor<64x256xf32>) -> tensor<256xf32>
func.func @columns(%x: tensor<64x256xf32>) -> tensor<256xf32> {
  %s = graph.reshape %x : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
  %0 = graph.reduce_sum %s {axes = array<i64: 0, 1>} : (tensor<2x32x256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// What varies over some of the parts keeps the operation as it is.
// CHECK-LABEL: @position
// CHECK: graph.reshape
// CHECK-NEXT: graph.add {{.*}} -> tensor<2x32x256xf32>
func.func @position(%x: tensor<64x256xf32>, %p: tensor<32x256xf32>) -> tensor<2x32x256xf32> {
  %s = graph.reshape %x : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
  %0 = graph.add %s, %p : (tensor<2x32x256xf32>, tensor<32x256xf32>) -> tensor<2x32x256xf32>
  return %0 : tensor<2x32x256xf32>
}

// The other operand is viewed the same way; block and phase are kept.
// CHECK-LABEL: @residual
// CHECK: %[[R:.*]] = graph.reshape %arg1 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<2x32x256xf32>) -> tensor<64x256xf32>
// CHECK-NEXT: %[[A:.*]] = graph.add %arg0, %[[R]] {graph.block = 1 : i64, graph.phase = #graph.phase<F>}
// CHECK-NEXT: graph.reshape %[[A]] {graph.block = 1 : i64, graph.phase = #graph.phase<F>}
func.func @residual(%x: tensor<64x256xf32>, %r: tensor<2x32x256xf32>) -> tensor<2x32x256xf32> {
  %s = graph.reshape %x {graph.block = 1, graph.phase = #graph.phase<F>} : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
  %0 = graph.add %s, %r {graph.block = 1, graph.phase = #graph.phase<F>} : (tensor<2x32x256xf32>, tensor<2x32x256xf32>) -> tensor<2x32x256xf32>
  return %0 : tensor<2x32x256xf32>
}

// Dropout does not care: an element's place in row-major order stays.
// CHECK-LABEL: @dropout
// CHECK-NEXT: graph.dropout %arg0, %arg1, %arg2 {{.*}} -> tensor<64x256xf32>
// CHECK-NEXT: return
func.func @dropout(%x: tensor<64x256xf32>, %k: tensor<7xi32>, %t: tensor<2xi32>) -> tensor<64x256xf32> {
  %s = graph.reshape %x : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
  %0 = graph.dropout %s, %k, %t {ratio = 0.1 : f64} : (tensor<2x32x256xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<2x32x256xf32>
  %1 = graph.reshape %0 : (tensor<2x32x256xf32>) -> tensor<64x256xf32>
  return %1 : tensor<64x256xf32>
}
