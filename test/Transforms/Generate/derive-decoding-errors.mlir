// RUN: dsopt-opt %s -split-input-file "-derive-decoding=rows=4 slots=3" -verify-diagnostics

// expected-error@+1 {{derive-decoding expects a function @evaluate with one body and one result}}
module {
}

// -----

module {
  // expected-error@+1 {{takes no tokens: nothing could be generated}}
  func.func @evaluate() -> (tensor<1x2x2xf32> {graph.prediction = "logits"}) {
    %y = graph.constant dense<0.0> : tensor<1x2x2xf32>
    return %y : tensor<1x2x2xf32>
  }
}

// -----

module {
  // expected-error@+1 {{takes b beside a, expected one input of tokens; others are bound by -input=NAME=VALUE}}
  func.func @evaluate(%a: tensor<1x2xf32> {graph.name = "a"}, %b: tensor<1x2xf32> {graph.name = "b"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %y = graph.add %a, %b : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %z = graph.reshape %y : (tensor<1x2xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}

// -----

module {
  // expected-error@+1 {{makes logits of labels, the labels that they are compared with}}
  func.func @evaluate(%a: tensor<1x2xf32> {graph.name = "labels", graph.label}, %b: tensor<1x2xf32> {graph.name = "b"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %y = graph.add %a, %b : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %z = graph.reshape %y : (tensor<1x2xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}

// -----

module {
  // expected-error@+1 {{takes x of type 'tensor<3xf32>', expected a token for each position, [sequences, T]; what is a setting is bound by -input=NAME=VALUE}}
  func.func @evaluate(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<1x3x1xf32> {graph.prediction = "logits"}) {
    %z = graph.reshape %x : (tensor<3xf32>) -> tensor<1x3x1xf32>
    return %z : tensor<1x3x1xf32>
  }
}

// -----

// A mean over time.
module {
  func.func @evaluate(%ids: tensor<1x4xf32> {graph.name = "ids"}) -> (tensor<1x4x1xf32> {graph.prediction = "logits"}) {
    // expected-error@+1 {{'graph.reduce_mean' op mixes positions, or says nothing of how it treats them: expected each by itself, or a rule by which none sees a later one}}
    %m = graph.reduce_mean %ids {axes = array<i64: 1>, keepdims} : (tensor<1x4xf32>) -> tensor<1x1xf32>
    %y = graph.sub %ids, %m : (tensor<1x4xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
    %z = graph.reshape %y : (tensor<1x4xf32>) -> tensor<1x4x1xf32>
    return %z : tensor<1x4x1xf32>
  }
}

// -----

// Time is turned round.
module {
  func.func @evaluate(%ids: tensor<1x4xf32> {graph.name = "ids"}) -> (tensor<1x4x1xf32> {graph.prediction = "logits"}) {
    // expected-error@+1 {{'graph.slice' op takes positions from 3 on by -1: rows would be others then}}
    %m = graph.slice %ids {sizes = array<i64: 1, 4>, starts = array<i64: 0, 3>, steps = array<i64: 1, -1>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %z = graph.reshape %m : (tensor<1x4xf32>) -> tensor<1x4x1xf32>
    return %z : tensor<1x4x1xf32>
  }
}

// -----

// Sequences of a batch see each other.
module {
  func.func @evaluate(%ids: tensor<2x4xf32> {graph.name = "ids"}) -> (tensor<2x4x1xf32> {graph.prediction = "logits"}) {
    // expected-error@+1 {{'graph.reduce_sum' op mixes sequences}}
    %m = graph.reduce_sum %ids {axes = array<i64: 0>, keepdims} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %y = graph.sub %ids, %m : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
    %z = graph.reshape %y : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    return %z : tensor<2x4x1xf32>
  }
}

// -----

// Each sequence of a batch has its own bias.
module {
  graph.parameter @b : tensor<2x4xf32> from "m" at 0 bytes 32
  func.func @evaluate(%ids: tensor<2x4xf32> {graph.name = "ids"}) -> (tensor<2x4x1xf32> {graph.prediction = "logits"}) {
    // expected-error@+1 {{has others of 'tensor<2x4xf32>' for each sequence of a batch of 2: no answer would be by itself}}
    %b = graph.read @b : tensor<2x4xf32>
    %y = graph.add %ids, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %z = graph.reshape %y : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    return %z : tensor<2x4x1xf32>
  }
}

// -----

// Positions meet positions in a product.
module {
  func.func @evaluate(%ids: tensor<1x4xf32> {graph.name = "ids"}) -> (tensor<1x4x4xf32> {graph.prediction = "logits"}) {
    %a = graph.reshape %ids : (tensor<1x4xf32>) -> tensor<1x4x1xf32>
    // expected-error@+1 {{'graph.matmul' op meets positions with other positions by no rule: expected each by itself}}
    %m = graph.matmul %a, %a {transpose_b} : (tensor<1x4x1xf32>, tensor<1x4x1xf32>) -> tensor<1x4x4xf32>
    return %m : tensor<1x4x4xf32>
  }
}

// -----

// A mask that lets a row read what comes.
module {
  func.func @evaluate(%ids: tensor<1x2xf32> {graph.name = "ids"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %q = graph.reshape %ids : (tensor<1x2xf32>) -> tensor<1x1x2x1xf32>
    %mask = graph.constant dense<[[0.0, -1.0], [0.0, 0.0]]> : tensor<2x2xf32>
    // expected-error@+1 {{'graph.attention' op reads positions behind its own: its mask lets position 0 read position 1}}
    %r, %lse = graph.attention %q, %q, %q, %mask {scale = 0.5 : f64} : (tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<2x2xf32>) -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
    %z = graph.reshape %r : (tensor<1x1x2x1xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}

// -----

// No mask at all, and one of a parameter.
module {
  func.func @evaluate(%ids: tensor<1x2xf32> {graph.name = "ids"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %q = graph.reshape %ids : (tensor<1x2xf32>) -> tensor<1x1x2x1xf32>
    // expected-error@+1 {{'graph.attention' op reads positions behind its own: it has no mask}}
    %r, %lse = graph.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>) -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
    %z = graph.reshape %r : (tensor<1x1x2x1xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}

// -----

module {
  graph.parameter @b : tensor<2x2xf32> from "m" at 0 bytes 16
  func.func @evaluate(%ids: tensor<1x2xf32> {graph.name = "ids"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %q = graph.reshape %ids : (tensor<1x2xf32>) -> tensor<1x1x2x1xf32>
    %mask = graph.read @b : tensor<2x2xf32>
    // expected-error@+1 {{'graph.attention' op has a mask that is no constant: nothing proves that it hides later positions}}
    %r, %lse = graph.attention %q, %q, %q, %mask {scale = 0.5 : f64} : (tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<2x2xf32>) -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
    %z = graph.reshape %r : (tensor<1x1x2x1xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}

// -----

// A mask of tokens.
module {
  func.func @evaluate(%ids: tensor<1x2xf32> {graph.name = "ids"}) -> (tensor<1x2x1xf32> {graph.prediction = "logits"}) {
    %q = graph.reshape %ids : (tensor<1x2xf32>) -> tensor<1x1x2x1xf32>
    %mask = graph.reshape %ids : (tensor<1x2xf32>) -> tensor<1x1x1x2xf32>
    // expected-error@+1 {{'graph.attention' op has a mask that is computed of tokens: what a row reads has to follow from positions alone}}
    %r, %lse = graph.attention %q, %q, %q, %mask {causal, scale = 0.5 : f64} : (tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x1x2xf32>) -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
    %z = graph.reshape %r : (tensor<1x1x2x1xf32>) -> tensor<1x2x1xf32>
    return %z : tensor<1x2x1xf32>
  }
}
