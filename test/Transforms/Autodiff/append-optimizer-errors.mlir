// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -append-optimizer
// RUN: echo "module {}" | not dsopt-opt -append-optimizer=optimizer=moun 2>&1 | FileCheck %s

// CHECK: error: optimizer 'moun' is not available, expected one of adafactor, adagrad, adam, adamw, lamb, lion, muon, onebit-adam, onebit-lamb, sgd, zero-one-adam

module {
  // expected-error@+1 {{trainable parameter has no gradient, expected one from build-backward}}
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
}

// -----

// expected-error@+1 {{-lr-scale got 'w*', expected GLOB=X with a number X >= 0}}
module attributes {dsopt.options = {lr_scale = ["w*"]}} {
}

// -----

// expected-error@+1 {{-no-decay=[w: }}
module attributes {dsopt.options = {no_decay = ["[w"]}} {
}

// -----

// expected-error@+1 {{-no-decay=bias matches no parameter of the model; did you mean '*bias', as in up.bias, down.bias?}}
module attributes {dsopt.options = {no_decay = ["bias"]}} {
  graph.parameter @up.weight : tensor<2x2xf32> from "m" at 0 bytes 16
  graph.parameter @up.bias : tensor<2xf32> from "m" at 0 bytes 8
  graph.parameter @down.bias : tensor<2xf32> from "m" at 0 bytes 8
}

// -----

// expected-error@+1 {{-lr-scale=norm.wieght matches no parameter of the model; near it are norm.weight}}
module attributes {dsopt.options = {lr_scale = ["norm.wieght=0.5"]}} {
  graph.parameter @norm.weight : tensor<2xf32> from "m" at 0 bytes 8
}

// -----

// expected-error@+1 {{-muon-except=head matches no parameter of the model}}
module attributes {dsopt.options = {optimizer = "muon", muon_except = ["head"]}} {
  graph.parameter @w : tensor<2x2xf32> from "m" at 0 bytes 16
}

// -----

// expected-error@+1 {{-optimizer=adafactor sees whole parameters: expected no -delayed-update}}
module attributes {dsopt.options = {optimizer = "adafactor", delayed_update = 2 : i64}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// What sees whole parameters, freezes a variance or sends something else than gradients has no step that leaves one alone.

// expected-error@+1 {{-optimizer=lamb would update parameter 'w' in steps that do not reach it, as a draw decides whether it is used: expected -optimizer=adamw, adam, sgd, lion or adagrad}}
module attributes {dsopt.options = {optimizer = "lamb"}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {branch}
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// expected-error@+1 {{-compress-gradients=onebit would update parameter 'w' in steps that do not reach it}}
module attributes {dsopt.options = {compress_gradients = "onebit"}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {branch}
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}
