// RUN: dsopt-opt %s -split-input-file -form-blocks | FileCheck %s

// F of all blocks, then B and W of each from the last to the first. A constant and
// a read are made where they are used; @block0 has no B.

// CHECK-LABEL: module @order
// CHECK: func private @block0.F(%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
// CHECK-NEXT: %[[W:.*]] = graph.read @w : tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = graph.mul %[[X]], %[[W]] : {{.*}}
// CHECK-NEXT: return %[[H]]
// CHECK: func private @block1.F(%{{.*}}: tensor<4xf32>) -> tensor<f32>
// CHECK: func private @block1.B(%[[SEED:.*]]: tensor<f32>, %[[H:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[TWO:.*]] = graph.constant dense<2.0
// CHECK-NEXT: graph.mul %[[SEED]], %[[TWO]]
// CHECK: func private @block1.W(%[[D:.*]]: tensor<4xf32>) attributes
// CHECK-NEXT: %[[TWO:.*]] = graph.constant dense<2.0
// CHECK-NEXT: graph.mul %[[D]], %[[TWO]]
// CHECK-NEXT: graph.accumulate @w.grad.1
// CHECK-NEXT: return
// CHECK-NOT: @block0.B
// CHECK: func private @block0.W
// CHECK: func @micro_batch(%[[X:.*]]: tensor<4xf32>, %[[SEED:.*]]: tensor<f32>)
// CHECK-NEXT: %[[H:.*]] = graph.run @block0.F(%[[X]])
// CHECK-NEXT: %[[L:.*]] = graph.run @block1.F(%[[H]])
// CHECK-NEXT: %[[D:.*]] = graph.run @block1.B(%[[SEED]], %[[H]])
// CHECK-NEXT: graph.run @block1.W(%[[D]])
// CHECK-NEXT: graph.run @block0.W(%[[X]], %[[D]])
// CHECK-NEXT: return %[[L]]
module @order {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
  graph.state @w.grad.1 : tensor<4xf32> gradient of @w block 1
  func.func @micro_batch(%x: tensor<4xf32>, %seed: tensor<f32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<4xf32>
    %h = graph.mul %x, %w {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %h {axes = array<i64: 0>, graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<f32>
    %two = graph.constant dense<2.0> : tensor<f32> {graph.block = 1 : i64, graph.phase = #graph.phase<B>}
    %t = graph.mul %seed, %two {graph.block = 1 : i64, graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %d = graph.mul %t, %h {graph.block = 1 : i64, graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %g1 = graph.mul %d, %two {graph.block = 1 : i64, graph.phase = #graph.phase<W>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    graph.accumulate @w.grad.1, %g1 {graph.block = 1 : i64, graph.phase = #graph.phase<W>} : tensor<4xf32>
    %g0 = graph.mul %x, %d {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.accumulate @w.grad.0, %g0 {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<4xf32>
    return %l : tensor<f32>
  }
}

// -----

// A reshape crosses as the value behind it, once, and is made again by its reader;
// a reshape of an input is the input; a reshape back is nothing.

// CHECK-LABEL: module @reshapes
// CHECK: func private @block0.F(%{{.*}}: tensor<2x2xf32>) -> tensor<4xf32>
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: %[[H:.*]] = graph.neg
// CHECK-NEXT: return %[[H]] : tensor<4xf32>
// CHECK: func private @block1.F(%[[H:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<2x2xf32>) -> tensor<1xf32>
// CHECK-DAG: %[[A:.*]] = graph.reshape %[[H]] : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK-DAG: %[[B:.*]] = graph.reshape %[[X]] : (tensor<2x2xf32>) -> tensor<4xf32>
// CHECK: graph.add %[[H]], %[[B]]
// CHECK: func @micro_batch(%{{.*}}) -> tensor<1xf32>
module @reshapes {
  func.func @micro_batch(%x: tensor<2x2xf32>) -> tensor<f32> {
    %0 = graph.reshape %x {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<2x2xf32>) -> tensor<4xf32>
    %1 = graph.neg %0 {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = graph.reshape %1 {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = graph.reshape %2 {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<2x2xf32>) -> tensor<4xf32>
    %4 = graph.exp %2 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %5 = graph.add %3, %0 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %e = graph.reshape %4 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<2x2xf32>) -> tensor<4xf32>
    %6 = graph.add %e, %5 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %7 = graph.reduce_sum %6 {axes = array<i64: 0>, graph.block = 1 : i64, graph.phase = #graph.phase<F>, keepdims} : (tensor<4xf32>) -> tensor<1xf32>
    %8 = graph.reshape %7 {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<1xf32>) -> tensor<f32>
    return %8 : tensor<f32>
  }
}
