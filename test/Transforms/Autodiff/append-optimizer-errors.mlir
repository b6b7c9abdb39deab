// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -append-optimizer

// expected-error@+1 {{optimizer 'lamb' is not available, expected sgd, adam or adamw}}
module attributes {dsopt.options = {optimizer = "lamb"}} {
}

// -----

module {
  // expected-error@+1 {{trainable parameter has no gradient, expected one from build-backward}}
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
}

// -----

// expected-error@+1 {{option lr_scale got 'w*', expected GLOB=X with a number X >= 0}}
module attributes {dsopt.options = {lr_scale = ["w*"]}} {
}

// -----

// expected-error@+1 {{option no_decay got '[w', which is no pattern: }}
module attributes {dsopt.options = {no_decay = ["[w"]}} {
}

// -----

// expected-warning@+1 {{option no_decay: no trainable parameter matches 'ln*'}}
module attributes {dsopt.options = {no_decay = ["ln*"]}} {
}
