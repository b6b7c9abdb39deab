// RUN: dsopt-opt %s -split-input-file -raise-linear-nll -canonicalize | FileCheck %s

graph.parameter @w : tensor<50x16xf32> from "model.onnx" at 0 bytes 3200
graph.parameter @b : tensor<50xf32> from "model.onnx" at 3200 bytes 200

// Through the bias and reshapes; the mean's divisor comes from labels alone.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<8x16xf32>, %labels: tensor<8xi64>, %count: tensor<f32>) -> tensor<f32> {
  // CHECK: %[[W:.*]] = graph.read @w
  // CHECK: %[[B:.*]] = graph.read @b
  %w = graph.read @w : tensor<50x16xf32>
  %b = graph.read @b : tensor<50xf32>
  // CHECK-NOT: graph.matmul
  // CHECK: %[[LOSS:.*]] = graph.linear_nll %arg0, %[[W]], %[[B]], %arg1 {ignore_index = -100 : i64, transpose_b}
  %y = graph.matmul %x, %w {transpose_b} : (tensor<8x16xf32>, tensor<50x16xf32>) -> tensor<8x50xf32>
  %r = graph.reshape %y : (tensor<8x50xf32>) -> tensor<2x4x50xf32>
  %a = graph.add %r, %b : (tensor<2x4x50xf32>, tensor<50xf32>) -> tensor<2x4x50xf32>
  %logits = graph.reshape %a : (tensor<2x4x50xf32>) -> tensor<8x50xf32>
  %loss, %lse = graph.nll %logits, %labels {ignore_index = -100 : i64} : (tensor<8x50xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: graph.reduce_sum %[[LOSS]]
  %s = graph.reduce_sum %loss {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %m = graph.div %s, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %m : tensor<f32>
}

// -----

graph.parameter @w : tensor<50x16xf32> from "model.onnx" at 0 bytes 3200

// A loss that goes on through something else than sums and known factors has a gradient that needs it.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: linear_nll
func.func @forward(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) -> tensor<f32> {
  %w = graph.read @w : tensor<50x16xf32>
  %y = graph.matmul %x, %w {transpose_b} : (tensor<8x16xf32>, tensor<50x16xf32>) -> tensor<8x50xf32>
  %loss, %lse = graph.nll %y, %labels {ignore_index = -100 : i64} : (tensor<8x50xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  %e = graph.exp %loss : (tensor<8xf32>) -> tensor<8xf32>
  %s = graph.reduce_sum %e {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

graph.parameter @w : tensor<50x16xf32> from "model.onnx" at 0 bytes 3200

// Nor are logits raised that something else reads.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: linear_nll
func.func @forward(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) -> tensor<f32> {
  %w = graph.read @w : tensor<50x16xf32>
  %y = graph.matmul %x, %w {transpose_b} : (tensor<8x16xf32>, tensor<50x16xf32>) -> tensor<8x50xf32>
  %loss, %lse = graph.nll %y, %labels {ignore_index = -100 : i64} : (tensor<8x50xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  %s = graph.reduce_sum %loss {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %z = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<8x50xf32>) -> tensor<f32>
  %t = graph.add %s, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %t : tensor<f32>
}
