// RUN: dsopt-opt %s -absorb-movements | FileCheck %s

// Parts of one product that attention reads; its result is written as the next product wants it, and read
// back from there.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<4x16x3x2x8xf32>, %w: tensor<16x16xf32>, %g: tensor<4x2x16x8xf32>)
    -> (tensor<64x16xf32>, tensor<4x16x3x2x8xf32>) {
  // CHECK: graph.transpose %{{.*}} {perm = array<i64: 2, 0, 3, 1, 4>, view = #graph.view<read>}
  %t = graph.transpose %x {perm = array<i64: 2, 0, 3, 1, 4>} : (tensor<4x16x3x2x8xf32>) -> tensor<3x4x2x16x8xf32>
  // CHECK-COUNT-3: graph.slice %{{.*}} view = #graph.view<read>
  %q0 = graph.slice %t {starts = array<i64: 0, 0, 0, 0, 0>, sizes = array<i64: 1, 4, 2, 16, 8>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  %k0 = graph.slice %t {starts = array<i64: 1, 0, 0, 0, 0>, sizes = array<i64: 1, 4, 2, 16, 8>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  %v0 = graph.slice %t {starts = array<i64: 2, 0, 0, 0, 0>, sizes = array<i64: 1, 4, 2, 16, 8>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  // A reshape has no mark: it is a view anyway.
  // CHECK-COUNT-3: graph.reshape %{{[^{]*$}}
  %q = graph.reshape %q0 : (tensor<1x4x2x16x8xf32>) -> tensor<4x2x16x8xf32>
  %k = graph.reshape %k0 : (tensor<1x4x2x16x8xf32>) -> tensor<4x2x16x8xf32>
  %v = graph.reshape %v0 : (tensor<1x4x2x16x8xf32>) -> tensor<4x2x16x8xf32>
  // CHECK: %[[OUT:.*]], %{{.*}} = graph.attention
  %o, %l = graph.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>) -> (tensor<4x2x16x8xf32>, tensor<4x2x16xf32>)
  // CHECK: %[[ROWS:.*]] = graph.transpose %[[OUT]] {perm = array<i64: 0, 2, 1, 3>, view = #graph.view<write>}
  // CHECK: %[[BACK:.*]] = graph.transpose %[[ROWS]] {perm = array<i64: 0, 2, 1, 3>, view = #graph.view<read>}
  %r = graph.transpose %o {perm = array<i64: 0, 2, 1, 3>} : (tensor<4x2x16x8xf32>) -> tensor<4x16x2x8xf32>
  %m = graph.reshape %r : (tensor<4x16x2x8xf32>) -> tensor<64x16xf32>
  %y = graph.matmul %m, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  // CHECK: graph.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[BACK]]
  %dq, %dk, %dv = graph.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0 : f64} : (tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>, tensor<4x2x16xf32>, tensor<4x2x16x8xf32>) -> (tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>)
  %dq0 = graph.reshape %dq : (tensor<4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  %dk0 = graph.reshape %dk : (tensor<4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  %dv0 = graph.reshape %dv : (tensor<4x2x16x8xf32>) -> tensor<1x4x2x16x8xf32>
  %gv = graph.slice_grad %dv0 {starts = array<i64: 2, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<1x4x2x16x8xf32>) -> tensor<3x4x2x16x8xf32>
  %gk = graph.slice_grad %dk0 {starts = array<i64: 1, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<1x4x2x16x8xf32>) -> tensor<3x4x2x16x8xf32>
  %gq = graph.slice_grad %dq0 {starts = array<i64: 0, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<1x4x2x16x8xf32>) -> tensor<3x4x2x16x8xf32>
  // CHECK: %[[ALL:.*]] = graph.concat %{{.*}}, %{{.*}}, %{{.*}} {axis = 0 : i64, view = #graph.view<write>}
  %s0 = graph.add %gv, %gk : (tensor<3x4x2x16x8xf32>, tensor<3x4x2x16x8xf32>) -> tensor<3x4x2x16x8xf32>
  %s1 = graph.add %s0, %gq : (tensor<3x4x2x16x8xf32>, tensor<3x4x2x16x8xf32>) -> tensor<3x4x2x16x8xf32>
  // CHECK: graph.transpose %[[ALL]] {perm = array<i64: 1, 3, 0, 2, 4>, view = #graph.view<write>}
  %dx = graph.transpose %s1 {perm = array<i64: 1, 3, 0, 2, 4>} : (tensor<3x4x2x16x8xf32>) -> tensor<4x16x3x2x8xf32>
  return %y, %dx : tensor<64x16xf32>, tensor<4x16x3x2x8xf32>
}

// What others read too, what is no matrix, and slices that would keep more alive than they show stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT: graph.view
func.func @others(%x: tensor<4x16x2x8xf32>, %w: tensor<8x8xf32>, %z: tensor<2x4x16x8xf32>)
    -> (tensor<4x2x16x8xf32>, tensor<4x8xf32>, tensor<2x4x16x16xf32>) {
  %t = graph.transpose %x {perm = array<i64: 0, 2, 1, 3>} : (tensor<4x16x2x8xf32>) -> tensor<4x2x16x8xf32>
  %e = graph.exp %t : (tensor<4x2x16x8xf32>) -> tensor<4x2x16x8xf32>
  %f = graph.reshape %t : (tensor<4x2x16x8xf32>) -> tensor<128x8xf32>
  %s = graph.slice %f {starts = array<i64: 0, 0>, sizes = array<i64: 4, 8>, steps = array<i64: 1, 1>} : (tensor<128x8xf32>) -> tensor<4x8xf32>
  %y = graph.matmul %s, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %u = graph.transpose %x {perm = array<i64: 2, 3, 1, 0>} : (tensor<4x16x2x8xf32>) -> tensor<2x8x16x4xf32>
  %v = graph.reshape %u : (tensor<2x8x16x4xf32>) -> tensor<2x4x16x8xf32>
  %p = graph.matmul %z, %v {transpose_b} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x16xf32>
  return %e, %y, %p : tensor<4x2x16x8xf32>, tensor<4x8xf32>, tensor<2x4x16x16xf32>
}
