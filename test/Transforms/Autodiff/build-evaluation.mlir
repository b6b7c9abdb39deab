// RUN: dsopt-opt %s -build-evaluation | FileCheck %s
// RUN: sed -e 's/train = 1/train = 0/' %s | dsopt-opt -build-evaluation | FileCheck %s --check-prefix=ALONE

// The copy has phase E; the loss keeps no logits there, nothing is dropped. Alone it takes the place of @forward.

module attributes {dsopt.options = {train = 1 : i64}, graph.blocks = 2 : i64} {
  graph.parameter @w : tensor<4x3xf32> from "m.bin" at 0 bytes 48

  // CHECK-LABEL: func.func @forward(
  // CHECK-NOT:     graph.phase
  // CHECK:         graph.dropout
  // CHECK:         graph.linear_nll {{.*}} {graph.block = 1 : i64
  // CHECK-LABEL: func.func @evaluate(
  // CHECK-SAME:    %[[X:.*]]: tensor<8x4xf32> {graph.name = "x"}, %[[L:.*]]: tensor<8xi64> {graph.name = "labels"}
  // CHECK:         %[[Y:.*]] = graph.tanh %[[X]] {graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  // CHECK:         %[[W:.*]] = graph.read @w {graph.block = 1 : i64, graph.phase = #graph.phase<E>}
  // CHECK:         %[[NONE:.*]] = graph.constant dense<0.000000e+00> : tensor<8xf32> {graph.block = 1 : i64, graph.phase = #graph.phase<E>}
  // CHECK:         %[[LOSS:.*]] = graph.linear_nll_grad %[[Y]], %[[W]], %[[L]], %[[NONE]] {graph.block = 1 : i64, graph.phase = #graph.phase<E>
  // CHECK-SAME:    -> tensor<8xf32>
  // CHECK:         graph.reduce_sum %[[LOSS]]
  // ALONE-NOT:   @forward
  // ALONE:       func.func @evaluate(
  // ALONE:         graph.linear_nll_grad
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %l: tensor<8xi64> {graph.name = "labels"}, %k: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %t = graph.constant dense<[0, -1]> : tensor<2xi32> {graph.block = 0 : i64}
    %y = graph.tanh %x {graph.block = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %w = graph.read @w {graph.block = 1 : i64} : tensor<4x3xf32>
    %d = graph.dropout %y, %k, %t {graph.block = 1 : i64, ratio = 0.1 : f64} : (tensor<8x4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<8x4xf32>
    %n = graph.linear_nll %d, %w, %l {graph.block = 1 : i64, ignore_index = -100 : i64} : (tensor<8x4xf32>, tensor<4x3xf32>, tensor<8xi64>) -> tensor<8xf32>
    %s = graph.reduce_sum %n {axes = array<i64: 0>, graph.block = 1 : i64} : (tensor<8xf32>) -> tensor<f32>
    return %s : tensor<f32>
  }
}
