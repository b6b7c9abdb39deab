// RUN: dsopt-opt %s -split-input-file -raise-rotary | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -raise-rotary -remarks-filter=idiom 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Halves; the sine's signs are folded, the transposition comes after the split.

// REMARK: remark: {{.*}}rotary
// CHECK-LABEL: module @halves
module @halves {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x2x4xf32>)
  func.func @forward(%x: tensor<3x2x4xf32>) -> tensor<2x3x4xf32> {
    // CHECK-DAG: %[[S:.*]] = graph.constant dense<{{\[\[\[}}-3.000000e+00, -4.000000e+00], [5.000000e+00, 6.000000e+00]]]> : tensor<1x2x2xf32>
    // CHECK-DAG: %[[P:.*]] = graph.reshape %[[X]] : (tensor<3x2x4xf32>) -> tensor<3x2x2x2xf32>
    // CHECK-DAG: %[[T:.*]] = graph.transpose %[[P]] {perm = array<i64: 1, 0, 2, 3>}
    // CHECK-DAG: %[[F:.*]] = graph.slice %[[T]] {sizes = array<i64: 2, 3, 2, 2>, starts = array<i64: 0, 0, 1, 0>, steps = array<i64: 1, 1, -1, 1>}
    // CHECK: %[[A:.*]] = graph.mul %[[T]], %{{.*}}
    // CHECK: %[[B:.*]] = graph.mul %[[F]], %[[S]]
    // CHECK: %[[Y:.*]] = graph.add %[[A]], %[[B]]
    // CHECK: graph.reshape %[[Y]] : (tensor<2x3x2x2xf32>) -> tensor<2x3x4xf32>
    // CHECK-NOT: graph.concat
    %cosine = graph.constant dense<[[1.0, 2.0, 1.0, 2.0]]> : tensor<1x4xf32>
    %sine = graph.constant dense<[[3.0, 4.0, 5.0, 6.0]]> : tensor<1x4xf32>
    %t = graph.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
    %h = graph.slice %t {starts = array<i64: 0, 0, 2>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
    %n = graph.neg %h : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
    %l = graph.slice %t {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
    %c = graph.concat %n, %l {axis = 2 : i64} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
    %a = graph.mul %t, %cosine : (tensor<2x3x4xf32>, tensor<1x4xf32>) -> tensor<2x3x4xf32>
    %b = graph.mul %c, %sine : (tensor<2x3x4xf32>, tensor<1x4xf32>) -> tensor<2x3x4xf32>
    %y = graph.add %a, %b : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %y : tensor<2x3x4xf32>
  }
}

// -----

// Neighbours, stacked and merged; tables that depend on inputs.

// CHECK-LABEL: module @neighbours
module @neighbours {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x6xf32>, %[[C:.*]]: tensor<3x6xf32>, %[[S:.*]]: tensor<3x1xf32>)
  func.func @forward(%x: tensor<3x6xf32>, %cosine: tensor<3x6xf32>, %sine: tensor<3x1xf32>) -> tensor<3x6xf32> {
    // CHECK: %[[P:.*]] = graph.reshape %[[X]] : (tensor<3x6xf32>) -> tensor<3x3x2xf32>
    // CHECK: %[[F:.*]] = graph.slice %[[P]] {sizes = array<i64: 3, 3, 2>, starts = array<i64: 0, 0, 1>, steps = array<i64: 1, 1, -1>}
    // CHECK: graph.constant dense<[-1.000000e+00, 1.000000e+00]> : tensor<2xf32>
    // CHECK: graph.reshape %[[S]] : (tensor<3x1xf32>) -> tensor<3x1x1xf32>
    // CHECK-NOT: graph.concat
    %h = graph.slice %x {starts = array<i64: 0, 1>, sizes = array<i64: 3, 3>, steps = array<i64: 1, 2>} : (tensor<3x6xf32>) -> tensor<3x3xf32>
    %n = graph.neg %h : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %l = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 3, 3>, steps = array<i64: 1, 2>} : (tensor<3x6xf32>) -> tensor<3x3xf32>
    %n1 = graph.reshape %n : (tensor<3x3xf32>) -> tensor<3x3x1xf32>
    %l1 = graph.reshape %l : (tensor<3x3xf32>) -> tensor<3x3x1xf32>
    %c = graph.concat %n1, %l1 {axis = 2 : i64} : (tensor<3x3x1xf32>, tensor<3x3x1xf32>) -> tensor<3x3x2xf32>
    %m = graph.reshape %c : (tensor<3x3x2xf32>) -> tensor<3x6xf32>
    %b = graph.mul %m, %sine : (tensor<3x6xf32>, tensor<3x1xf32>) -> tensor<3x6xf32>
    %a = graph.mul %x, %cosine : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<3x6xf32>
    %y = graph.add %a, %b : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<3x6xf32>
    return %y : tensor<3x6xf32>
  }
}

// -----

// What stays: a turn that is added to something else (which is said); halves that are not negated.

// CHECK-LABEL: module @kept
// REMARK: the turned pairs are not added to the pairs themselves
module @kept {
  // CHECK-COUNT-2: graph.concat
  func.func @forward(%x: tensor<3x4xf32>, %sine: tensor<3x1xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %h = graph.slice %x {starts = array<i64: 0, 2>, sizes = array<i64: 3, 2>, steps = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
    %n = graph.neg %h : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %l = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 3, 2>, steps = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
    %c = graph.concat %n, %l {axis = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
    %b = graph.mul %c, %sine : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
    %y = graph.add %x, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %d = graph.concat %h, %l {axis = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
    return %y, %d : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
