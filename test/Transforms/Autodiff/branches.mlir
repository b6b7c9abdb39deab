// RUN: dsopt-opt %s -split-input-file -build-backward -append-optimizer | FileCheck %s

// @in is read inside of a side alone: where it is not taken its gradient is -0, and where it is no element is. What goes from the side to
// the outside is selected, as @out is read outside, too.

// CHECK-LABEL: module @side
// CHECK: graph.parameter @in {{.*}}branch
// CHECK-NOT: graph.parameter @out {{.*}}branch
// CHECK: graph.state @in.steps : tensor<4x4xf32> optimizer "steps" of @in
// CHECK-LABEL: func @micro_batch
// CHECK: %[[H:.*]] = graph.matmul
// CHECK-NOT: branch}
// CHECK: %[[DY:.*]] = graph.where %[[C:.*]], %{{.*}}, %{{.*}} {{.*}}#graph.phase<W>} : (tensor<1xi1>
// CHECK: %[[SKIP:.*]] = graph.where %[[C]]
// CHECK: %[[DH:.*]] = graph.matmul %[[DY]], {{.*}}transpose_b
// CHECK: %[[G:.*]] = graph.matmul %[[H]], %[[DY]] {{.*}}transpose_a
// CHECK: %[[TAKEN:.*]] = graph.where %{{.*}}, %[[DH]], %{{.*}} {{.*}} : (tensor<i1>
// CHECK: graph.add %[[SKIP]], %[[TAKEN]]
// CHECK: %[[ZERO:.*]] = graph.constant dense<0.000000e+00>
// CHECK: %[[IS:.*]] = graph.equal %[[G]], %[[ZERO]]
// CHECK: %[[POSITIVE:.*]] = graph.where %[[IS]], %[[ZERO]], %[[G]]
// CHECK: %[[NONE:.*]] = graph.constant dense<-0.000000e+00>
// CHECK: %[[MARKED:.*]] = graph.where %{{.*}}, %[[POSITIVE]], %[[NONE]]
// CHECK: graph.accumulate @in.grad.0, %[[MARKED]]
// CHECK-LABEL: func @update
// CHECK: graph.adam
// CHECK: graph.branch_update "adam"
// CHECK-SAME: decoupled
module @side {
  graph.parameter @out : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @in : tensor<4x4xf32> from "m" at 64 bytes 64
  func.func @forward(%x: tensor<8x4xf32>, %c: tensor<1xi1>) -> tensor<f32> {
    %o = graph.read @out {graph.block = 0 : i64} : tensor<4x4xf32>
    %h = graph.matmul %x, %o {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %i = graph.read @in {graph.block = 0 : i64} : tensor<4x4xf32>
    %y = graph.matmul %h, %i {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %z = graph.where %c, %y, %h {graph.block = 0 : i64, branch} : (tensor<1xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %l = graph.reduce_sum %z {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<8x4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Read on both sides, a parameter is always reached; in a plain where, too.

// CHECK-LABEL: module @both
// CHECK-NOT: {branch}
// CHECK: return
module @both {
  graph.parameter @w : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @plain : tensor<8x4xf32> from "m" at 64 bytes 128
  func.func @forward(%x: tensor<8x4xf32>, %c: tensor<1xi1>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x4xf32>
    %a = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %b = graph.relu %a {graph.block = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %not = graph.not %c {graph.block = 0 : i64} : (tensor<1xi1>) -> tensor<1xi1>
    %y = graph.where %c, %a, %x {graph.block = 0 : i64, branch} : (tensor<1xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %z = graph.where %not, %b, %y {graph.block = 0 : i64, branch} : (tensor<1xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %p = graph.read @plain {graph.block = 0 : i64} : tensor<8x4xf32>
    %q = graph.where %c, %p, %z {graph.block = 0 : i64} : (tensor<1xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %l = graph.reduce_sum %q {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<8x4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
