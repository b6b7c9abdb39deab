// RUN: dsopt-opt %s -raise-linear-nll -find-blocks -build-backward -merge-loss-gradient -append-optimizer \
// RUN:   -verify-graph | FileCheck %s

// The loss' block computes its gradients in F; with two blocks it is W of the first, which has no
// gradient to hand on, that reads one of them.

// CHECK: %[[LOSS:.*]], %[[X_GRAD:.*]], %{{.*}}, %{{.*}} = graph.linear_nll_grad
// CHECK-SAME: graph.block = 1 : i64, graph.phase = #graph.phase<F>
// CHECK: graph.mul %[[X_GRAD]], %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
graph.parameter @a : tensor<16x8xf32> from "m" at 0 bytes 512
graph.parameter @b : tensor<8x5xf32> from "m" at 512 bytes 160
graph.parameter @c : tensor<5xf32> from "m" at 672 bytes 20
func.func @forward(%x: tensor<4x16xf32>, %labels: tensor<4xi64>) -> tensor<f32> {
  %a = graph.read @a : tensor<16x8xf32>
  %0 = graph.matmul %x, %a : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = graph.tanh %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = graph.read @b : tensor<8x5xf32>
  %2 = graph.matmul %1, %b : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %c = graph.read @c : tensor<5xf32>
  %3 = graph.add %2, %c : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  %loss, %lse = graph.nll %3, %labels {ignore_index = -100 : i64} : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %4 = graph.reduce_mean %loss {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
