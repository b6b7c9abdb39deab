// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -attach-metrics

module attributes {dsopt.options = {metric = ["sharpness"]}} {
  // expected-error@+1 {{-metric=sharpness: expected accuracy, top5 (or another number), perplexity, f1, precision, recall, mse, rmse or mae, with or without :OUTPUT,LABELS}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["accuracy"]}} {
  // expected-error@+1 {{-metric=accuracy: the loss has 0 cross entropies with labels; say what to compare: -metric=accuracy:LOGITS,LABELS}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["f1:out,y"]}} {
  // expected-error@+1 {{-metric=f1:out,y: the scores are of 5000 classes, expected 4096 or fewer: each is counted in each micro-batch}}
  func.func @forward(%x: tensor<8x5000xf32> {graph.name = "x"}, %y: tensor<8xi32> {graph.name = "y"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8x5000xf32> {graph.output = "out"}, tensor<8xi32> {graph.output = "y"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0, 1>} : (tensor<8x5000xf32>) -> tensor<f32>
    return %loss, %x, %y : tensor<f32>, tensor<8x5000xf32>, tensor<8xi32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["mse:out,y"]}} {
  // expected-error@+1 {{-metric=mse:out,y: compares 'tensor<8xf32>' with 'tensor<4xf32>', expected floats and what has their shape}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8xf32> {graph.output = "out"}, tensor<4xf32> {graph.output = "y"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss, %x, %y : tensor<f32>, tensor<8xf32>, tensor<4xf32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["mse:out,y"]}} {
  // expected-error@+1 {{-metric=mse:out,y: the model computes no 'out' (a module has it as a result with graph.output)}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{a metric has the name 'lr', which is the log's own}}
func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"lr", mean>}) {
  %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  return %loss, %loss : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{two metrics have the name 'size': they would be one in the log}}
func.func @forward(%x: tensor<8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"size", mean>}, tensor<f32> {graph.metric = #graph.metric<"size", mean>}) {
  %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  return %loss, %loss, %loss : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{metric 'rate' is an input itself, expected what the model computes}}
func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %rate: tensor<f32> {graph.name = "rate"}) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"rate", mean>}) {
  %loss = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  return %loss, %rate : tensor<f32>, tensor<f32>
}

// -----

// A sigmoid for each of several labels.
module attributes {dsopt.options = {metric = ["accuracy"]}} {
  // expected-error@+1 {{-metric=accuracy: the loss compares 'tensor<8x3xf32>' with labels of their own, expected one score a row}}
  func.func @forward(%x: tensor<8x3xf32> {graph.name = "x"}, %y: tensor<8x3xf32> {graph.name = "y"}) -> (tensor<f32> {graph.name = "loss"}) {
    %one = graph.constant dense<1.0> : tensor<f32>
    %no = graph.sub %one, %y : (tensor<f32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %scored = graph.mul %no, %x : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %p = graph.sigmoid %x : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %log = graph.log %p : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %each = graph.sub %scored, %log : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %loss = graph.reduce_mean %each {axes = array<i64: 0, 1>} : (tensor<8x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What else weighs rows may leave some out.
module attributes {dsopt.options = {metric = ["accuracy"]}} {
  // expected-error@+1 {{-metric=accuracy: the loss has 0 cross entropies with labels; say what to compare: -metric=accuracy:LOGITS,LABELS}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %y: tensor<8xf32> {graph.name = "y"}, %m: tensor<8xf32> {graph.name = "m"}) -> (tensor<f32> {graph.name = "loss"}) {
    %one = graph.constant dense<1.0> : tensor<f32>
    %no = graph.sub %one, %y : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
    %scored = graph.mul %no, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %p = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
    %log = graph.log %p : (tensor<8xf32>) -> tensor<8xf32>
    %each = graph.sub %scored, %log : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %kept = graph.mul %each, %m : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %loss = graph.reduce_mean %kept {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["top3"]}} {
  // expected-error@+1 {{-metric=top3: the scores are of 2 classes, expected 3 or more}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %y: tensor<8xf32> {graph.name = "y"}) -> (tensor<f32> {graph.name = "loss"}) {
    %one = graph.constant dense<1.0> : tensor<f32>
    %no = graph.sub %one, %y : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
    %scored = graph.mul %no, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %p = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
    %log = graph.log %p : (tensor<8xf32>) -> tensor<8xf32>
    %each = graph.sub %scored, %log : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %loss = graph.reduce_mean %each {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {metric = ["perplexity:p,labels"]}} {
  // expected-error@+1 {{-metric=perplexity:p,labels: 'p' comes from a softmax along another axis, expected scores: name what is before it}}
  func.func @forward(%x: tensor<8x3xf32> {graph.name = "x"}, %labels: tensor<8xi64> {graph.name = "labels"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8x3xf32> {graph.output = "p"}, tensor<8xi64> {graph.output = "labels"}) {
    %p = graph.softmax %x {axis = 0 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %loss = graph.reduce_mean %x {axes = array<i64: 0, 1>} : (tensor<8x3xf32>) -> tensor<f32>
    return %loss, %p, %labels : tensor<f32>, tensor<8x3xf32>, tensor<8xi64>
  }
}

// -----

module attributes {dsopt.options = {metric = ["accuracy:p,y"]}} {
  // expected-error@+1 {{-metric=accuracy:p,y: 'p' comes from a sigmoid and then from other operations, expected scores: name what is before it}}
  func.func @forward(%x: tensor<8xf32> {graph.name = "x"}, %y: tensor<8xf32> {graph.name = "y"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<8xf32> {graph.output = "p"}, tensor<8xf32> {graph.output = "y"}) {
    %small = graph.constant dense<1.0e-7> : tensor<f32>
    %s = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
    %p = graph.add %s, %small : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %loss = graph.reduce_mean %p {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %loss, %p, %y : tensor<f32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{attach-metrics expects a function @forward with one body}}
module {}
