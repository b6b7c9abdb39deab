// RUN: dsopt-opt %s -split-input-file -raise-norms | FileCheck %s

// A standard deviation, corrected by a factor.

// CHECK-LABEL: module @deviation
module @deviation {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3xf32> {
    // CHECK: %[[C:.*]] = graph.mul %{{.*}}, %{{.*}} : (tensor<3xf32>, tensor<f32>)
    // CHECK: %[[Z:.*]] = graph.equal %[[C]], %
    // CHECK: %[[T:.*]] = graph.where %[[Z]], %{{.*}}, %[[C]]
    // CHECK: %[[Q:.*]] = graph.sqrt %[[T]]
    // CHECK: %[[Y:.*]] = graph.where %[[Z]], %{{.*}}, %[[Q]]
    // CHECK: return %[[Y]]
    %f = graph.constant dense<1.14285719> : tensor<f32>
    %a = graph.reduce_mean %x {axes = array<i64: 1>, keepdims} : (tensor<3x8xf32>) -> tensor<3x1xf32>
    %d = graph.sub %x, %a : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %p = graph.mul %d, %d : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %m = graph.reduce_mean %p {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %c = graph.mul %m, %f : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %y = graph.sqrt %c : (tensor<3xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}

// -----

// Of a third power the root is what has no slope at zero; of a square root, the power.

// CHECK-LABEL: module @norms
module @norms {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    // CHECK: %[[A:.*]] = graph.abs %[[X]]
    // CHECK: %[[S:.*]] = graph.reduce_sum
    // CHECK: %[[Z:.*]] = graph.equal %[[S]], %
    // CHECK: %[[T:.*]] = graph.where %[[Z]], %{{.*}}, %[[S]]
    // CHECK: graph.pow %[[T]], %
    // CHECK: %[[E:.*]] = graph.equal %[[A]], %
    // CHECK: %[[U:.*]] = graph.where %[[E]], %{{.*}}, %[[A]]
    // CHECK: graph.pow %[[U]], %
    // CHECK: %[[V:.*]] = graph.where %[[E]]
    // CHECK: %[[R:.*]] = graph.reduce_sum %[[V]]
    // CHECK-NEXT: graph.pow %[[R]], %
    %three = graph.constant dense<3.0> : tensor<f32>
    %third = graph.constant dense<0.333333343> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %two = graph.constant dense<2.0> : tensor<f32>
    %a = graph.abs %x : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %p = graph.pow %a, %three : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %s = graph.reduce_sum %p {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %y = graph.pow %s, %third : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %q = graph.pow %a, %half : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %t = graph.reduce_sum %q {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %z = graph.pow %t, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    return %y, %z : tensor<3xf32>, tensor<3xf32>
  }
}

// -----

// Roots of other sums keep their slope; an epsilon leaves nothing to guard.

// CHECK-LABEL: module @unlike
module @unlike {
  func.func @forward(%x: tensor<3x8xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    // CHECK-NOT: graph.where
    // CHECK: return
    %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %cube = graph.constant dense<3.0> : tensor<f32>
    %p = graph.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = graph.reduce_sum %p {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %e = graph.add %s, %epsilon : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %a = graph.sqrt %e : (tensor<3xf32>) -> tensor<3xf32>
    %t = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %b = graph.sqrt %t : (tensor<3xf32>) -> tensor<3xf32>
    %q = graph.pow %x, %cube : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %u = graph.reduce_sum %q {axes = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
    %c = graph.pow %u, %half : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    return %a, %b, %c : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
