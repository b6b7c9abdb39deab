// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

// Each where it belongs.
module attributes {graph.blocks = 1 : i64, graph.model = "model.onnx", graph.model_folder = "", graph.model_type = bf16,
                   graph.untie = ["w*"], graph.weights_folder = "weights"} {
  graph.parameter @w : tensor<8x4xf32> from "model.onnx" at 0 bytes 128
    {decay_scale = 0.0 : f64, lr_scale = 0.5 : f64, storage = bf16}
  graph.parameter @side : tensor<4xf32> from "model.onnx" at 0 bytes 16 {branch}
  graph.parameter @mean : tensor<4xf32> from "model.onnx" at 0 bytes 16 {statistic}
  func.func private @kernel0(tensor<4xf32>) -> tensor<4xf32>
    attributes {graph.in_place = array<i64: 0>, graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 4>}
  func.func private @step(%i: tensor<2xi64> {graph.bound = 8 : i64, graph.ignore_index = -100 : i64, graph.label,
                                             graph.least = -8 : i64, graph.name = "i"},
                          %c: tensor<3xi64> {graph.context}, %s: tensor<f32> {graph.seed, graph.source = f16})
      -> (tensor<f32> {graph.name = "loss"}, tensor<4xf32> {graph.momentum = 0.9 : f64, graph.sequential, graph.statistic = @mean})
  func.func private @block0.F(%w: tensor<8x4xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32>
      attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %rows = graph.gather %w, %i {axis = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>, padding_index = 0 : i64}
      : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    return %rows : tensor<2x4xf32>
  }
}

// -----

// expected-error@below {{attribute 'graph.blok' does not exist; did you mean 'graph.block'?}}
func.func private @f() attributes {graph.blok = 0 : i64}

// -----

// expected-error@below {{attribute 'graph.strategy' does not exist}}
func.func private @f() attributes {graph.strategy = 0 : i64}

// -----

// expected-error@below {{attribute 'graph.block' is "three", expected an i64 of 0 or more}}
func.func private @f() attributes {graph.block = "three"}

// -----

// expected-error@below {{attribute 'graph.block' is -1 : i64, expected an i64 of 0 or more}}
func.func private @f() attributes {graph.block = -1 : i64}

// -----

// expected-error@below {{attribute 'graph.phase' is 7 : i64, expected a phase: #graph.phase<F>, <B>, <W> or <E>}}
func.func private @f() attributes {graph.phase = 7 : i64}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{attribute 'graph.phase' is "G", expected a phase: #graph.phase<F>, <B>, <W> or <E>}}
  %y = graph.tanh %x {graph.phase = "G"} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@below {{attribute 'graph.phase' stands on argument 0 of 'func.func', expected it on a function or an operation of graph or func.call}}
func.func private @f(tensor<4xf32> {graph.phase = #graph.phase<F>})

// -----

// expected-error@below {{attribute 'graph.iterate' is "lines", expected what a kernel runs over: #graph.iteration<rows>, <columns> or <flat>}}
func.func private @f() attributes {graph.iterate = "lines"}

// -----

// expected-error@below {{attribute 'graph.range' is [4], expected an array<i64> of 0 or more each}}
func.func private @f() attributes {graph.range = [4]}

// -----

// expected-error@below {{attribute 'graph.range' is array<i64: -1>, expected an array<i64> of 0 or more each}}
func.func private @f() attributes {graph.range = array<i64: -1>}

// -----

// expected-error@below {{'graph.parameter' op is stored as 'i16', expected floats}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {storage = i16}

// -----

// expected-error@below {{'graph.parameter' op has a factor -1.000000e+00, expected at least 0}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {lr_scale = -1.0 : f64}

// -----

// expected-error@below {{attribute 'decay_scale' failed to satisfy constraint: 64-bit float attribute}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {decay_scale = 1 : i64}

// -----

// expected-error@below {{'graph.parameter' op is part of @v without its first element there, expected both part_of and part_begin of a tile}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {part_of = @v}

// -----

// expected-error@below {{attribute 'graph.statistic' of result 0 is unit, expected a symbol of this module}}
func.func private @f() -> (tensor<4xf32> {graph.statistic})

// -----

// expected-error@below {{attribute 'graph.statistic' stands on argument 0 of 'func.func', expected it on a function's result}}
func.func private @f(tensor<4xf32> {graph.statistic})

// -----

// expected-error@below {{attribute 'graph.name' of argument 1 is 3 : i64, expected a string}}
func.func private @f(tensor<4xf32>, tensor<4xf32> {graph.name = 3 : i64})

// -----

// expected-error@below {{attribute 'graph.seed' stands on result 0 of 'func.func', expected it on a function's argument}}
func.func private @f() -> (tensor<4xf32> {graph.seed})

// -----

// expected-error@below {{attribute 'graph.bound' of argument 0 is 8 : i32, expected an i64}}
func.func private @f(tensor<4xi64> {graph.bound = 8 : i32})

// -----

func.func @f(%p: tensor<4xf32>, %s: tensor<20xf32>) -> tensor<4xf32> {
  // expected-error@below {{attribute 'functions' failed to satisfy constraint: the functions that an update becomes}}
  %y = graph.sgd %p, %p, %s {functions = @k} : (tensor<4xf32>, tensor<4xf32>, tensor<20xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@below {{attribute 'graph.untie' is "w*", expected an array of strings}}
module attributes {graph.untie = "w*"} {}

// -----

// expected-error@below {{attribute 'graph.blocks' stands on 'func.func', expected it on a module}}
func.func private @f() attributes {graph.blocks = 1 : i64}

// -----

// expected-error@below {{got runs of 4 elements every 2 and a step of 0, expected one element or more, a stride of at least as many and no step back}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {part_of = @v, part_begin = 0 : i64, part_runs = #graph.runs<4 every 2 step 0>}

// -----

// expected-error@below {{has the elements #graph.runs<3 every 8 step 3>, expected whole runs of a parameter that it is part of}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {part_of = @v, part_begin = 0 : i64, part_runs = #graph.runs<3 every 8 step 3>}

// -----

// expected-error@+1 {{is asked to be cut along 1 by node 'n', expected asked_by and one of its 1 dimensions, or -1}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {asked_dim = 1 : i64, asked_by = "node 'n'"}

// -----

// expected-error@+1 {{is asked to be cut along 0 by nobody, expected asked_by and one of its 1 dimensions, or -1}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {asked_dim = 0 : i64}

// -----

// expected-error@+1 {{of 1 dimensions is transposed, expected a matrix}}
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16 {transposed}
