// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func private @block0.F() attributes {dist.stage = 0 : i64}

// -----

// expected-error@below {{attribute 'dist.stge' does not exist; did you mean 'dist.stage'?}}
func.func private @block0.F() attributes {dist.stge = 0 : i64}

// -----

// expected-error@below {{attribute 'dist.stage' is "0", expected an i64 of 0 or more}}
func.func private @block0.F() attributes {dist.stage = "0"}

// -----

// expected-error@below {{attribute 'dist.stage' stands on 'builtin.module', expected it on a function}}
module attributes {dist.stage = 0 : i64} {}

// -----

// expected-error@below {{attribute 'dist.stage' stands on argument 0 of 'func.func', expected it on a function}}
func.func private @block0.F(tensor<4xf32> {dist.stage = 0 : i64})

// -----

// expected-error@below {{attribute 'dist.stage' stands on result 0 of 'func.func', expected it on a function}}
func.func private @block0.F() -> (tensor<4xf32> {dist.stage = 0 : i64})

// -----

func.func @meets(%x: tensor<4xf32>) {
  // expected-error@below {{attribute 'dist.tensor' stands on 'graph.add', expected it on dist.shared or dist.all_reduce or graph.tree_add}}
  %0 = graph.add %x, %x {dist.tensor} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
