// RUN: dsopt-opt %s -split-input-file -attach-metrics | FileCheck %s

// Scores that are a product are computed once more, right behind what they are made of; what is compared comes
// from the loss.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"accuracy", ratio>}, tensor<f32> {graph.metric = #graph.metric<"accuracy", ratio>}, tensor<f32> {graph.metric = #graph.metric<"perplexity", exponential>}, tensor<f32> {graph.metric = #graph.metric<"perplexity", exponential>})
// CHECK: %[[OWN:.*]] = graph.matmul %arg0, %[[W:.*]] :
// CHECK: graph.less_equal %[[OWN]],
// CHECK: %[[LOGITS:.*]] = graph.matmul %arg0, %[[W]] :
// CHECK-NEXT: %[[LOSSES:.*]], %{{.*}} = graph.nll %[[LOGITS]], %arg1
// CHECK-NEXT: %[[SUM:.*]] = graph.reduce_sum %[[LOSSES]]
// CHECK: %[[LOSS:.*]] = graph.reduce_mean %[[LOSSES]]
// CHECK: return %[[LOSS]], %{{.*}}, %{{.*}}, %[[SUM]], %{{.*}} : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
module attributes {dsopt.options = {metric = ["accuracy", "perplexity"]}} {
  graph.parameter @w : tensor<4x3xf32> from "model.onnx" at 0 bytes 48
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %labels: tensor<8xi64> {graph.name = "labels"}) -> (tensor<f32> {graph.name = "loss"}) {
    %w = graph.read @w : tensor<4x3xf32>
    %logits = graph.matmul %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
    %losses, %lse = graph.nll %logits, %labels {ignore_index = -100 : i64} : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    %loss = graph.reduce_mean %losses {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Given operands are results, which go; an output that is logged stays, and what it is made of moves up to it.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"size", mean>}, tensor<f32> {graph.metric = #graph.metric<"out_mae", mean>})
// CHECK: %[[H:.*]] = graph.tanh
// CHECK-NEXT: %[[SIZE:.*]] = graph.reduce_mean %[[H]]
// CHECK-NEXT: %[[OUT:.*]] = graph.exp %[[H]]
// CHECK-NEXT: %[[D:.*]] = graph.sub %[[OUT]], %arg1
// CHECK-NEXT: %[[ABS:.*]] = graph.abs %[[D]]
// CHECK-NEXT: %[[MAE:.*]] = graph.reduce_mean %[[ABS]] {axes = array<i64: 0, 1>}
// CHECK-NEXT: %[[LOSS:.*]] = graph.reduce_mean %[[OUT]]
// CHECK-NEXT: return %[[LOSS]], %[[SIZE]], %[[MAE]]
module attributes {dsopt.options = {metric = ["mae:out,y"]}} {
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %y: tensor<8x4xf32> {graph.name = "y"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"size", mean>}, tensor<8x4xf32> {graph.output = "out"}, tensor<8x4xf32> {graph.output = "y"}) {
    %h = graph.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %out = graph.exp %h : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %loss = graph.reduce_mean %out {axes = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
    %size = graph.reduce_mean %h {axes = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
    return %loss, %size, %out, %y : tensor<f32>, tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// Of classes: three counts for each. Labels that a model picks logarithms of probabilities by are found, too.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<3xf32> {graph.metric = #graph.metric<"f1", f1>}, tensor<3xf32> {graph.metric = #graph.metric<"f1", f1>}, tensor<3xf32> {graph.metric = #graph.metric<"f1", f1>})
// CHECK: graph.reduce_min
module attributes {dsopt.options = {metric = ["f1"]}} {
  func.func @forward(%logs: tensor<8x3xf32> {graph.name = "logs"}, %labels: tensor<8xi64> {graph.name = "labels"}) -> (tensor<f32> {graph.name = "loss"}) {
    %none = graph.constant dense<-1> : tensor<i64>
    %zero = graph.constant dense<0> : tensor<i64>
    %x = graph.exp %logs : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %ignored = graph.equal %labels, %none : (tensor<8xi64>, tensor<i64>) -> tensor<8xi1>
    %readable = graph.where %ignored, %zero, %labels : (tensor<8xi1>, tensor<i64>, tensor<8xi64>) -> tensor<8xi64>
    %column = graph.reshape %readable : (tensor<8xi64>) -> tensor<8x1xi64>
    %picked = graph.gather_elements %x, %column {axis = 1 : i64} : (tensor<8x3xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
    %loss = graph.reduce_mean %picked {axes = array<i64: 0, 1>} : (tensor<8x1xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One score a row: two classes, of which the first has the score 0; labels are above one half or not.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<2xf32> {graph.metric = #graph.metric<"f1", f1>}, tensor<2xf32> {graph.metric = #graph.metric<"f1", f1>}, tensor<2xf32> {graph.metric = #graph.metric<"f1", f1>}, tensor<f32> {graph.metric = #graph.metric<"p_accuracy", ratio>}, tensor<f32> {graph.metric = #graph.metric<"p_accuracy", ratio>})
// CHECK: %[[COLUMN:.*]] = graph.reshape %arg0 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK: graph.where %{{.*}}, %[[COLUMN]], %{{.*}} : (tensor<1x2xi1>, tensor<8x1xf32>, tensor<f32>) -> tensor<8x2xf32>
module attributes {dsopt.options = {metric = ["f1", "accuracy:p,y"]}} {
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %y: tensor<8xf32> {graph.name = "y"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8xf32> {graph.output = "p"}, tensor<8xf32> {graph.output = "y"}) {
    %one = graph.constant dense<1.0> : tensor<f32>
    %no = graph.sub %one, %y : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
    %scored = graph.mul %no, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %p = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
    %log = graph.log %p : (tensor<8xf32>) -> tensor<8xf32>
    %each = graph.sub %scored, %log : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %loss = graph.reduce_mean %each {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss, %p, %y : tensor<f32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Without metrics nothing changes.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT: %[[LOSS:.*]] = graph.reduce_mean
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>
module {
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Of a softmax that is named the scores are compared, as those of the loss are.
// CHECK-LABEL: func.func @forward
// CHECK: %[[OWN:.*]] = graph.matmul %arg0
// CHECK-NOT: graph.softmax
// CHECK: graph.reduce_max %[[OWN]]
// CHECK: return
module attributes {dsopt.options = {metric = ["perplexity:soft,labels"]}} {
  graph.parameter @w : tensor<4x3xf32> from "model.onnx" at 0 bytes 48
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %labels: tensor<8xi64> {graph.name = "labels"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8x3xf32> {graph.output = "soft"}, tensor<8xi64> {graph.output = "labels"}) {
    %w = graph.read @w : tensor<4x3xf32>
    %logits = graph.matmul %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
    %soft = graph.softmax %logits {axis = 1 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %loss = graph.reduce_mean %logits {axes = array<i64: 0, 1>} : (tensor<8x3xf32>) -> tensor<f32>
    return %loss, %soft, %labels : tensor<f32>, tensor<8x3xf32>, tensor<8xi64>
  }
}
