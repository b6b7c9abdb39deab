// RUN: dsopt-opt %s -merge-loss-gradient -split-input-file | FileCheck %s

graph.parameter @w : tensor<50x16xf32> from "model.onnx" at 0 bytes 3200
graph.state @w.grad.0 : tensor<50x16xf32> gradient of @w block 0

// What the gradient starts from is made in F as well; the accumulation follows.
// CHECK-LABEL: func.func @micro_batch
func.func @micro_batch(%x: tensor<8x16xf32>, %labels: tensor<8xi64>, %seed: tensor<f32>) -> (tensor<f32>, tensor<8x16xf32>) {
  // CHECK: %[[W:.*]] = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // CHECK: %[[G:.*]] = graph.expand %arg2 {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // CHECK: %[[LOSS:.*]], %[[DX:.*]], %[[DW:.*]] = graph.linear_nll_grad %arg0, %[[W]], %arg1, %[[G]] {graph.block = 0 : i64, graph.phase = #graph.phase<F>
  // CHECK-NOT: graph.linear_nll
  %w = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<50x16xf32>
  %loss = graph.linear_nll %x, %w, %labels {ignore_index = -100 : i64, transpose_b, graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<8x16xf32>, tensor<50x16xf32>, tensor<8xi64>) -> tensor<8xf32>
  // CHECK: graph.reduce_sum %[[LOSS]]
  %s = graph.reduce_sum %loss {axes = array<i64: 0>, graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<8xf32>) -> tensor<f32>
  %g = graph.expand %seed {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<f32>) -> tensor<8xf32>
  %v = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : tensor<50x16xf32>
  %l, %dx, %dw = graph.linear_nll_grad %x, %v, %labels, %g {ignore_index = -100 : i64, transpose_b, resultSegmentSizes = array<i32: 1, 1, 1, 0>, graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<8x16xf32>, tensor<50x16xf32>, tensor<8xi64>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8x16xf32>, tensor<50x16xf32>)
  // CHECK: graph.accumulate @w.grad.0, %[[DW]] {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  graph.accumulate @w.grad.0, %dw {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<50x16xf32>
  // CHECK: return %{{.*}}, %[[DX]]
  return %s, %dx : tensor<f32>, tensor<8x16xf32>
}

// -----

graph.parameter @w : tensor<16x8xf32> from "model.onnx" at 0 bytes 512
graph.state @w.grad.0 : tensor<16x8xf32> gradient of @w block 0

// Two losses of one product: a gradient belongs to the one with its labels, though they are made anew in B.
// CHECK-LABEL: func.func @micro_batch
func.func @micro_batch(%x: tensor<4x8xf32>, %labels: tensor<4x1xi64>, %others: tensor<4x1xi64>, %seed: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[MINE:.*]] = graph.reshape %arg1
  // CHECK: %[[OTHERS:.*]] = graph.reshape %arg2
  // CHECK: %[[LOSS:.*]], %[[DW:.*]] = graph.linear_nll_grad %arg0, %{{.*}}, %[[MINE]], %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<F>
  // CHECK: %[[OTHER:.*]] = graph.linear_nll %arg0, %{{.*}}, %[[OTHERS]]
  // CHECK: graph.accumulate @w.grad.0, %[[DW]] {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // CHECK: return %[[LOSS]], %[[OTHER]]
  %w = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<16x8xf32>
  %l = graph.reshape %labels {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4x1xi64>) -> tensor<4xi64>
  %o = graph.reshape %others {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4x1xi64>) -> tensor<4xi64>
  %a = graph.linear_nll %x, %w, %l {ignore_index = -100 : i64, transpose_b, graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi64>) -> tensor<4xf32>
  %b = graph.linear_nll %x, %w, %o {ignore_index = -100 : i64, transpose_b, graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi64>) -> tensor<4xf32>
  %v = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : tensor<16x8xf32>
  %g = graph.expand %seed {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<f32>) -> tensor<4xf32>
  %m = graph.reshape %labels {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<4x1xi64>) -> tensor<4xi64>
  %loss, %dw = graph.linear_nll_grad %x, %v, %m, %g {ignore_index = -100 : i64, transpose_b, resultSegmentSizes = array<i32: 1, 0, 1, 0>, graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<16x8xf32>)
  graph.accumulate @w.grad.0, %dw {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<16x8xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

graph.parameter @w : tensor<16x8xf32> from "model.onnx" at 0 bytes 512
graph.state @w.grad.0 : tensor<16x8xf32> gradient of @w block 0

// The only loss has other labels.
// CHECK-LABEL: func.func @micro_batch
func.func @micro_batch(%x: tensor<4x8xf32>, %labels: tensor<4xi64>, %others: tensor<4xi64>, %seed: tensor<f32>) -> tensor<4xf32> {
  // CHECK: %[[LOSS:.*]] = graph.linear_nll %arg0, %{{.*}}, %arg2
  // CHECK: graph.linear_nll_grad %arg0, %{{.*}}, %arg1, %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<B>
  // CHECK: return %[[LOSS]]
  %w = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<16x8xf32>
  %b = graph.linear_nll %x, %w, %others {ignore_index = -100 : i64, transpose_b, graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi64>) -> tensor<4xf32>
  %v = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : tensor<16x8xf32>
  %g = graph.expand %seed {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<f32>) -> tensor<4xf32>
  %loss, %dw = graph.linear_nll_grad %x, %v, %labels, %g {ignore_index = -100 : i64, transpose_b, resultSegmentSizes = array<i32: 1, 0, 1, 0>, graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<16x8xf32>)
  graph.accumulate @w.grad.0, %dw {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<16x8xf32>
  return %b : tensor<4xf32>
}
