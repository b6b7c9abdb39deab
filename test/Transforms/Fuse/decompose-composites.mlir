// RUN: dsopt-opt %s -decompose-composites | FileCheck %s

// The mean's division is one a result.
// CHECK-LABEL: @mean
// CHECK-NEXT: graph.reduce_sum %{{.*}} {axes = array<i64: 1>, keepdims}
// CHECK-NEXT: graph.constant dense<4.000000e+00> : tensor<f32>
// CHECK-NEXT: graph.div
func.func @mean(%x: tensor<8x4xf32>) -> tensor<8x1xf32> {
  %y = graph.reduce_mean %x {axes = array<i64: 1>, keepdims} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  return %y : tensor<8x1xf32>
}

// The parts inherit block and phase.
// CHECK-LABEL: @softmax
// CHECK-NEXT: graph.reduce_max {{.*}}graph.block = 3 : i64, graph.phase = #graph.phase<F>
// CHECK-NEXT: graph.sub {{.*}}graph.block = 3
// CHECK-NEXT: graph.exp
// CHECK-NEXT: graph.reduce_sum
// CHECK-NEXT: graph.reciprocal
// CHECK-NEXT: graph.mul {{.*}}graph.phase = #graph.phase<F>
func.func @softmax(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = graph.softmax %x {axis = 1, graph.block = 3, graph.phase = #graph.phase<F>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @layer_norm
// CHECK: graph.sqrt %{{.*}} : (tensor<8x1xf32>)
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>
func.func @layer_norm(%x: tensor<8x4xf32>, %s: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>) {
  %y, %m, %r = graph.layer_norm %x, %s {axis = 1, epsilon = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return %y, %m, %r : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>
}

// A label that is ignored reads no logit outside the row.
// CHECK-LABEL: @nll
// CHECK: %[[OFF:.*]] = graph.constant dense<-100> : tensor<i64>
// CHECK: %[[IGNORED:.*]] = graph.equal %{{.*}}, %[[OFF]]
// CHECK: graph.log
// CHECK: %[[LABEL:.*]] = graph.where %[[IGNORED]]
// CHECK: graph.gather_elements %{{.*}}, %[[LABEL]]
func.func @nll(%x: tensor<8x4xf32>, %l: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %y, %s = graph.nll %x, %l {ignore_index = -100} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %y, %s : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @gelu
// CHECK-NOT: graph.gelu
// CHECK: graph.erf
// CHECK: graph.tanh
func.func @gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = graph.gelu %x : (tensor<8xf32>) -> tensor<8xf32>
  %z = graph.gelu %y {approximate_tanh} : (tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// What says something about gradients alone is nothing after backward, and what it holds goes with it.
// CHECK-LABEL: @given
// CHECK-NEXT: graph.neg
// CHECK-NEXT: return
func.func @given(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = graph.stop_gradient %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.custom_gradient 0 of(%x : tensor<4xf32>) is(%s : tensor<4xf32>) saved() {
  ^bb0(%g: tensor<4xf32>):
    %d = graph.softmax %g {axis = 0} : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %d : tensor<4xf32>
  } -> tensor<4xf32>
  %z = graph.neg %y : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
