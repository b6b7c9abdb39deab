// RUN: dsopt-opt %s -split-input-file -keep-logits | FileCheck %s

// Rows that the loss leaves out, and how it merges them, come behind the logits; labels are gone.

// CHECK-LABEL: module @shifted
// CHECK: func.func @forward(%arg0: tensor<2x8xi64> {graph.name = "input_ids"}) -> (tensor<2x8x32xf32> {graph.prediction = "logits", graph.shape = array<i64: 2, 8, 32>})
// CHECK: [[L:%.*]] = graph.gather
// CHECK-NEXT: return [[L]]
module @shifted {
  graph.parameter @w : tensor<32x32xf32> from "m" at 0 bytes 4096
  func.func @forward(%ids: tensor<2x8xi64> {graph.name = "input_ids"}, %labels: tensor<2x8xi64> {graph.label, graph.name = "labels"}) -> tensor<14xf32> {
    %w = graph.read @w : tensor<32x32xf32>
    %logits = graph.gather %w, %ids {axis = 0 : i64} : (tensor<32x32xf32>, tensor<2x8xi64>) -> tensor<2x8x32xf32>
    %rows = graph.slice %logits {sizes = array<i64: 2, 7, 32>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : (tensor<2x8x32xf32>) -> tensor<2x7x32xf32>
    %x = graph.reshape %rows : (tensor<2x7x32xf32>) -> tensor<14x32xf32>
    %next = graph.slice %labels {sizes = array<i64: 2, 7>, starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : (tensor<2x8xi64>) -> tensor<2x7xi64>
    %y = graph.reshape %next : (tensor<2x7xi64>) -> tensor<14xi64>
    %loss, %lse = graph.nll %x, %y {ignore_index = -100 : i64} : (tensor<14x32xf32>, tensor<14xi64>) -> (tensor<14xf32>, tensor<14xf32>)
    return %loss : tensor<14xf32>
  }
}

// -----

// Of two losses that of the most classes is of tokens; logits that are merged in the model, too, have their
// sequences back.

// CHECK-LABEL: module @merged
// CHECK: -> (tensor<2x4x8xf32> {graph.prediction = "logits"
// CHECK: [[M:%.*]] = graph.gather {{.*}} -> tensor<8x8xf32>
// CHECK: [[R:%.*]] = graph.reshape [[M]] : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
// CHECK: return [[R]]
module @merged {
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  graph.parameter @v : tensor<8x2xf32> from "m" at 256 bytes 64
  func.func @forward(%ids: tensor<2x4xi64> {graph.name = "input_ids"}, %labels: tensor<8xi64> {graph.label, graph.name = "labels"}) -> (tensor<8xf32>, tensor<8xf32>) {
    %w = graph.read @w : tensor<8x8xf32>
    %v = graph.read @v : tensor<8x2xf32>
    %flat = graph.reshape %ids : (tensor<2x4xi64>) -> tensor<8xi64>
    %logits = graph.gather %w, %flat {axis = 0 : i64} : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
    %few = graph.gather %v, %flat {axis = 0 : i64} : (tensor<8x2xf32>, tensor<8xi64>) -> tensor<8x2xf32>
    %loss, %lse = graph.nll %logits, %labels {ignore_index = -100 : i64} : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    %other, %lse2 = graph.nll %few, %labels {ignore_index = -100 : i64} : (tensor<8x2xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    return %loss, %other : tensor<8xf32>, tensor<8xf32>
  }
}
