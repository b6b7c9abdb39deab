// RUN: dsopt-opt %s -split-input-file -raise-attention | FileCheck %s

// Scale on both factors, k transposed in three dimensions: k itself is read. The
// mask that is low behind the diagonal is causal, and then no row is NaN.

// CHECK-LABEL: module @gpt
module @gpt {
  graph.parameter @w : tensor<4x8xf32> from "m" at 0 bytes 128
  // CHECK: func.func @forward(%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x4x3x8xf32>, %[[V:.*]]: tensor<2x4x3x5xf32>)
  func.func @forward(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32> {
    // CHECK-NEXT: %[[R:.*]], %{{.*}} = graph.attention %[[Q]], %[[K]], %[[V]] {causal, scale = 2.500000e-01 : f64}
    // CHECK-NEXT: return %[[R]]
    %half = graph.constant dense<0.5> : tensor<f32>
    %zero = graph.constant dense<0.0> : tensor<f32>
    %mask = graph.constant dense<[[0.0, -3.4e38, -3.4e38], [0.0, 0.0, -3.4e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
    %k3 = graph.reshape %k : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %kt3 = graph.transpose %k3 {perm = array<i64: 0, 2, 1>} : (tensor<8x3x8xf32>) -> tensor<8x8x3xf32>
    %kt = graph.reshape %kt3 : (tensor<8x8x3xf32>) -> tensor<2x4x8x3xf32>
    %qs = graph.mul %q, %half : (tensor<2x4x3x8xf32>, tensor<f32>) -> tensor<2x4x3x8xf32>
    %ks = graph.mul %kt, %half : (tensor<2x4x8x3xf32>, tensor<f32>) -> tensor<2x4x8x3xf32>
    %s = graph.matmul %qs, %ks : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
    %m = graph.add %s, %mask : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
    %p = graph.softmax %m {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %n = graph.isnan %p : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %z = graph.where %n, %zero, %p : (tensor<2x4x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %r = graph.matmul %z, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    return %r : tensor<2x4x3x5xf32>
  }
}

// -----

// A mask made from inputs is added; a row may read nothing, which gives zeros.
// The transposition to k^T becomes the one to k.

// CHECK-LABEL: module @padded
module @padded {
// CHECK: func.func @forward(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x4x3x8xf32>, %[[C:.*]]: tensor<2x1x1x3xi1>
func.func @forward(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x4x3x8xf32>, %c: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  // CHECK: %[[MASK:.*]] = graph.where %[[C]]
  // CHECK: %[[KH:.*]] = graph.transpose %[[K]] {perm = array<i64: 0, 2, 1, 3>}
  // CHECK: %[[R:.*]], %{{.*}} = graph.attention %[[Q]], %[[KH]], %[[V]], %[[MASK]] {scale = 1.250000e-01 : f64}
  // CHECK: %[[NAN:.*]] = graph.isnan %[[R]]
  // CHECK: graph.where %[[NAN]], %{{.*}}, %[[R]]
  // CHECK-NOT: graph.softmax
  %eight = graph.constant dense<8.0> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %low = graph.constant dense<0xFF800000> : tensor<f32>
  %mask = graph.where %c, %zero, %low : (tensor<2x1x1x3xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x3xf32>
  %kt = graph.transpose %k {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x8x3xf32>
  %s = graph.matmul %q, %kt : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
  %d = graph.div %s, %eight : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %m = graph.add %mask, %d : (tensor<2x1x1x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %p = graph.softmax %m {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %n = graph.isnan %p : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
  %z = graph.where %n, %zero, %p : (tensor<2x4x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %r = graph.matmul %z, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %r : tensor<2x4x3x8xf32>
}
}

// -----

// Three dimensions; masked by a condition.

// CHECK-LABEL: module @flat
module @flat {
func.func @forward(%q: tensor<6x3x8xf32>, %k: tensor<6x4x8xf32>, %v: tensor<6x4x8xf32>, %c: tensor<3x4xi1>) -> tensor<6x3x8xf32> {
  // CHECK-DAG: %[[Q:.*]] = graph.reshape %arg0 : (tensor<6x3x8xf32>) -> tensor<1x6x3x8xf32>
  // CHECK-DAG: %[[K:.*]] = graph.reshape %arg1 : (tensor<6x4x8xf32>) -> tensor<1x6x4x8xf32>
  // CHECK-DAG: %[[V:.*]] = graph.reshape %arg2 : (tensor<6x4x8xf32>) -> tensor<1x6x4x8xf32>
  // CHECK-DAG: %[[MASK:.*]] = graph.where %arg3
  // CHECK: %[[R:.*]], %{{.*}} = graph.attention %[[Q]], %[[K]], %[[V]], %[[MASK]] {scale = 1.000000e+00 : f64}
  // CHECK: graph.reshape %[[R]] : (tensor<1x6x3x8xf32>) -> tensor<6x3x8xf32>
  %low = graph.constant dense<-1.0e38> : tensor<f32>
  %s = graph.matmul %q, %k {transpose_b} : (tensor<6x3x8xf32>, tensor<6x4x8xf32>) -> tensor<6x3x4xf32>
  %m = graph.where %c, %s, %low : (tensor<3x4xi1>, tensor<6x3x4xf32>, tensor<f32>) -> tensor<6x3x4xf32>
  %p = graph.softmax %m {axis = 2 : i64} : (tensor<6x3x4xf32>) -> tensor<6x3x4xf32>
  %r = graph.matmul %p, %v : (tensor<6x3x4xf32>, tensor<6x4x8xf32>) -> tensor<6x3x8xf32>
  return %r : tensor<6x3x8xf32>
}
}

// -----

// What stays: a bias that is trained, scores with another use, few rows of many columns.

// CHECK-LABEL: module @kept
module @kept {
  graph.parameter @bias : tensor<3x3xf32> from "m" at 0 bytes 36
  // CHECK-NOT: graph.attention
  func.func @forward(%q: tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>) {
    %bias = graph.read @bias : tensor<3x3xf32>
    %s = graph.matmul %q, %q {transpose_b} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x3xf32>
    %m = graph.add %s, %bias : (tensor<1x4x3x3xf32>, tensor<3x3xf32>) -> tensor<1x4x3x3xf32>
    %p = graph.softmax %m {axis = 3 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
    %r = graph.matmul %p, %q : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
    %s2 = graph.matmul %r, %q {transpose_b} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x3xf32>
    %p2 = graph.softmax %s2 {axis = 3 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
    %r2 = graph.matmul %p2, %q : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
    return %r2, %p2 : tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>
  }
}

// -----

// A branch in the form of a mask: it says that a step may not reach what the scores are made of.

// CHECK-LABEL: module @branch
module @branch {
  // CHECK-NOT: graph.attention
  // CHECK: graph.where {{.*}} {branch}
  func.func @forward(%q: tensor<6x3x8xf32>, %k: tensor<6x4x8xf32>, %v: tensor<6x4x8xf32>, %c: tensor<i1>) -> tensor<6x3x8xf32> {
    %low = graph.constant dense<-1.0e38> : tensor<f32>
    %s = graph.matmul %q, %k {transpose_b} : (tensor<6x3x8xf32>, tensor<6x4x8xf32>) -> tensor<6x3x4xf32>
    %m = graph.where %c, %s, %low {branch} : (tensor<i1>, tensor<6x3x4xf32>, tensor<f32>) -> tensor<6x3x4xf32>
    %p = graph.softmax %m {axis = 2 : i64} : (tensor<6x3x4xf32>) -> tensor<6x3x4xf32>
    %r = graph.matmul %p, %v : (tensor<6x3x4xf32>, tensor<6x4x8xf32>) -> tensor<6x3x8xf32>
    return %r : tensor<6x3x8xf32>
  }
}

// -----

// CHECK-LABEL: module @few
module @few {
  // CHECK-NOT: graph.attention
  func.func @forward(%q: tensor<2x8x8xf32>, %k: tensor<2x128x8xf32>) -> tensor<2x8x8xf32> {
    %s = graph.matmul %q, %k {transpose_b} : (tensor<2x8x8xf32>, tensor<2x128x8xf32>) -> tensor<2x8x128xf32>
    %p = graph.softmax %s {axis = 2 : i64} : (tensor<2x8x128xf32>) -> tensor<2x8x128xf32>
    %r = graph.matmul %p, %k : (tensor<2x8x128xf32>, tensor<2x128x8xf32>) -> tensor<2x8x8xf32>
    return %r : tensor<2x8x8xf32>
  }
}

// -----

// What another attention gives, raised or not, is no mask: a mask has no gradient.

// CHECK-LABEL: module @added
module @added {
  graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
  func.func @forward(%q: tensor<1x2x4x8xf32>, %x: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
    // CHECK: %[[FIRST:.*]], %{{.*}} = graph.attention
    // CHECK-NOT: graph.attention
    // CHECK: %[[SUM:.*]] = graph.add %{{.*}}, %[[FIRST]]
    // CHECK: graph.softmax %[[SUM]]
    %w = graph.read @w : tensor<8xf32>
    %k = graph.mul %x, %w : (tensor<1x2x4x8xf32>, tensor<8xf32>) -> tensor<1x2x4x8xf32>
    %s1 = graph.matmul %q, %k {transpose_b} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
    %p1 = graph.softmax %s1 {axis = 3 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %r1 = graph.matmul %p1, %v : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %s2 = graph.matmul %k, %q {transpose_b} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
    %m2 = graph.add %s2, %r1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %p2 = graph.softmax %m2 {axis = 3 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %r2 = graph.matmul %p2, %v : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    return %r2 : tensor<1x2x4x4xf32>
  }
}

// -----

// A mask that is counted says the same as one that is stored. One that reads a column more is a mask.

// CHECK-LABEL: module @counted
module @counted {
  // CHECK: graph.attention %{{.*}} {causal, scale = 1.000000e+00 : f64}
  // CHECK: graph.attention %{{.*}} {causal, scale = 1.000000e+00 : f64}
  // CHECK: graph.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {scale = 1.000000e+00 : f64}
  func.func @forward(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x5x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) {
    %zero = graph.constant dense<0.0> : tensor<f32>
    %low = graph.constant dense<-3.4e38> : tensor<f32>
    %two = graph.constant dense<2> : tensor<1xi64>
    %columns = graph.iota {axis = 0 : i64} : () -> tensor<5xi64>
    %places = graph.constant dense<[0, 1, 2]> : tensor<3xi64>
    %own = graph.add %places, %two : (tensor<3xi64>, tensor<1xi64>) -> tensor<3xi64>
    %rows = graph.reshape %own : (tensor<3xi64>) -> tensor<3x1xi64>
    %kt = graph.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x5x8xf32>) -> tensor<1x2x8x5xf32>

    %reads = graph.less_equal %columns, %rows : (tensor<5xi64>, tensor<3x1xi64>) -> tensor<3x5xi1>
    %m0 = graph.where %reads, %zero, %low : (tensor<3x5xi1>, tensor<f32>, tensor<f32>) -> tensor<3x5xf32>
    %t0 = graph.matmul %q, %kt : (tensor<1x2x3x8xf32>, tensor<1x2x8x5xf32>) -> tensor<1x2x3x5xf32>
    %s0 = graph.add %t0, %m0 : (tensor<1x2x3x5xf32>, tensor<3x5xf32>) -> tensor<1x2x3x5xf32>
    %p0 = graph.softmax %s0 {axis = 3 : i64} : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
    %r0 = graph.matmul %p0, %k : (tensor<1x2x3x5xf32>, tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32>

    %behind = graph.greater %columns, %rows : (tensor<5xi64>, tensor<3x1xi64>) -> tensor<3x5xi1>
    %number = graph.cast %behind : (tensor<3x5xi1>) -> tensor<3x5xf32>
    %m1 = graph.mul %number, %low : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
    %t1 = graph.matmul %q, %kt : (tensor<1x2x3x8xf32>, tensor<1x2x8x5xf32>) -> tensor<1x2x3x5xf32>
    %s1 = graph.add %t1, %m1 : (tensor<1x2x3x5xf32>, tensor<3x5xf32>) -> tensor<1x2x3x5xf32>
    %p1 = graph.softmax %s1 {axis = 3 : i64} : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
    %r1 = graph.matmul %p1, %k : (tensor<1x2x3x5xf32>, tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32>

    %more = graph.greater_equal %columns, %rows : (tensor<5xi64>, tensor<3x1xi64>) -> tensor<3x5xi1>
    %m2 = graph.where %more, %low, %zero : (tensor<3x5xi1>, tensor<f32>, tensor<f32>) -> tensor<3x5xf32>
    %t2 = graph.matmul %q, %kt : (tensor<1x2x3x8xf32>, tensor<1x2x8x5xf32>) -> tensor<1x2x3x5xf32>
    %s2 = graph.add %t2, %m2 : (tensor<1x2x3x5xf32>, tensor<3x5xf32>) -> tensor<1x2x3x5xf32>
    %p2 = graph.softmax %s2 {axis = 3 : i64} : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
    %r2 = graph.matmul %p2, %k : (tensor<1x2x3x5xf32>, tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32>
    return %r0, %r1, %r2 : tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>
  }
}
