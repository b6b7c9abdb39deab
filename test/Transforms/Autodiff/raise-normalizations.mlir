// RUN: dsopt-opt %s -split-input-file -raise-normalizations | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -raise-normalizations -remarks-filter=idiom 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// As dynamo writes it: a power, the root's reciprocal, the weight on the left.

// REMARK: remark: {{.*}}rms_norm
// CHECK-LABEL: module @dynamo
module @dynamo {
  graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
  // CHECK: func.func @forward(%[[X:.*]]: tensor<2x3x8xf32>)
  func.func @forward(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    // CHECK-NEXT: %[[W:.*]] = graph.read @w
    // CHECK-NEXT: %[[R:.*]], %{{.*}} = graph.rms_norm %[[X]], %[[W]] {axis = 2 : i64, epsilon = 9.9999999{{[0-9]*}}E-7 : f64}
    // CHECK-NEXT: return %[[R]]
    %c2 = graph.constant dense<2.0> : tensor<f32>
    %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
    %p = graph.pow %x, %c2 : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
    %m = graph.reduce_mean %p {axes = array<i64: 2>, keepdims} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
    %e = graph.add %m, %epsilon : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
    %q = graph.sqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %r = graph.reciprocal %q : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %n = graph.mul %x, %r : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %w = graph.read @w : tensor<8xf32>
    %y = graph.mul %w, %n : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }
}

// -----

// As torchscript writes it: one over the root. Two readers: there is no scale.

// CHECK-LABEL: module @torchscript
module @torchscript {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
    // CHECK: %[[ONE:.*]] = graph.constant dense<1.000000e+00> : tensor<8xf32>
    // CHECK: %[[R:.*]], %{{.*}} = graph.rms_norm %[[X]], %[[ONE]]
    // CHECK: graph.exp %[[R]]
    %one = graph.constant dense<1.0> : tensor<f32>
    %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
    %p = graph.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %m = graph.reduce_mean %p {axes = array<i64: 1>, keepdims} : (tensor<3x8xf32>) -> tensor<3x1xf32>
    %e = graph.add %epsilon, %m : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
    %q = graph.sqrt %e : (tensor<3x1xf32>) -> tensor<3x1xf32>
    %r = graph.div %one, %q : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
    %n = graph.mul %x, %r : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %y = graph.exp %n : (tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y, %n : tensor<3x8xf32>, tensor<3x8xf32>
  }
}

// -----

// What is squared has its mean subtracted: layer normalization, with a scalar scale and a bias.

// CHECK-LABEL: module @centered
module @centered {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>, %[[B:.*]]: tensor<1x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>, %b: tensor<1x8xf32>) -> tensor<3x8xf32> {
    // CHECK-DAG: %[[W8:.*]] = graph.expand %{{.*}} : (tensor<f32>) -> tensor<8xf32>
    // CHECK-DAG: %[[B8:.*]] = graph.reshape %[[B]] : (tensor<1x8xf32>) -> tensor<8xf32>
    // CHECK: graph.layer_norm %[[X]], %[[W8]], %[[B8]] {axis = 1 : i64, epsilon = 1.250000e-01 : f64}
    // CHECK-NOT: graph.sqrt
    %three = graph.constant dense<3.0> : tensor<f32>
    %epsilon = graph.constant dense<0.125> : tensor<f32>
    %mean = graph.reduce_mean %x {axes = array<i64: 1>, keepdims} : (tensor<3x8xf32>) -> tensor<3x1xf32>
    %c = graph.sub %x, %mean : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %p = graph.mul %c, %c : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %m = graph.reduce_mean %p {axes = array<i64: 1>, keepdims} : (tensor<3x8xf32>) -> tensor<3x1xf32>
    %e = graph.add %m, %epsilon : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
    %q = graph.sqrt %e : (tensor<3x1xf32>) -> tensor<3x1xf32>
    %n = graph.div %c, %q : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %s = graph.mul %n, %three : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %y = graph.add %s, %b : (tensor<3x8xf32>, tensor<1x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// What stays: a mean over other dimensions, a root that something else uses (which is said).

// CHECK-LABEL: module @kept
// REMARK: the root of the mean square does not divide what was squared, or not it alone
module @kept {
  // CHECK-NOT: graph.rms_norm
  func.func @forward(%x: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x1xf32>) {
    %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
    %p = graph.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %m = graph.reduce_mean %p {axes = array<i64: 0>, keepdims} : (tensor<3x8xf32>) -> tensor<1x8xf32>
    %e = graph.add %m, %epsilon : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
    %q = graph.sqrt %e : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %n = graph.div %x, %q : (tensor<3x8xf32>, tensor<1x8xf32>) -> tensor<3x8xf32>
    %m2 = graph.reduce_mean %p {axes = array<i64: 1>, keepdims} : (tensor<3x8xf32>) -> tensor<3x1xf32>
    %e2 = graph.add %m2, %epsilon : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
    %q2 = graph.sqrt %e2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
    %n2 = graph.div %x, %q2 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    return %n, %n2, %q2 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x1xf32>
  }
}
