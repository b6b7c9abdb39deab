// Parameters and states, and what reads and writes them. One message says what was got and what was expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'graph.parameter' op has 24 bytes, expected 96 for 'tensor<4x6xf32>'}}
graph.parameter @w : tensor<4x6xf32> from "w" at 0 bytes 24

// -----

// expected-error @below {{'graph.parameter' op is at offset -8, expected at least 0}}
graph.parameter @w : tensor<2xf32> from "w" at -8 bytes 8

// -----

// expected-error @below {{'graph.parameter' op ends at byte 72 of a file of 64 bytes}}
graph.parameter @w : tensor<2xf32> from "w" at 64 bytes 8 {file_bytes = 64 : i64}

// -----

// expected-error @below {{'graph.parameter' op has 2 chunk hashes, expected 1 for 8 bytes}}
graph.parameter @w : tensor<2xf32> from "w" at 64 bytes 8 {chunks = array<i64: 1, 2>}

// -----

// expected-error @below {{'graph.parameter' op converts 'f16' to 'tensor<4xf64>', expected floats to f32}}
graph.parameter @w : tensor<4xf64> from "w" at 0 bytes 8 {source = f16}

// -----

// expected-error @below {{'graph.state' op has no name, expected one of what an optimizer keeps}}
graph.state @w.m : tensor<4xf32> optimizer of @w

// -----

// expected-error @below {{'graph.state' op has a name, expected one of what an optimizer keeps}}
graph.state @w.master : tensor<4xf32> master "m" of @w

// -----

// expected-error @below {{'graph.state' op is of no block, expected one of a gradient}}
graph.state @w.grad.0 : tensor<4xf32> gradient of @w

// -----

// expected-error @below {{'graph.state' op is of a block, expected one of a gradient}}
graph.state @w.m : tensor<4xf32> optimizer "m" of @w block 0

// -----

graph.parameter @w : tensor<2x3xf32> from "w" at 0 bytes 24
func.func @unknown() {
  // expected-error @below {{'graph.read' op names @v, which is no parameter or state of this module}}
  %0 = graph.read @v : tensor<2x3xf32>
  return
}

// -----

graph.parameter @w : tensor<2x3xf32> from "w" at 0 bytes 24
func.func @read_type() {
  // expected-error @below {{'graph.read' op has type 'tensor<6xf32>', expected 'tensor<2x3xf32>', the type of @w}}
  %0 = graph.read @w : tensor<6xf32>
  return
}

// -----

graph.parameter @w : tensor<2x3xf32> from "w" at 0 bytes 24
func.func @accumulate(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.accumulate' op names @w, which is no state of this module}}
  graph.accumulate @w, %x : tensor<2x3xf32>
  return
}

// -----

graph.parameter @w : tensor<2x3xf32> from "w" at 0 bytes 24
func.func @write(%y: tensor<3x2xf32>) {
  // expected-error @below {{'graph.write' op has type 'tensor<3x2xf32>', expected 'tensor<2x3xf32>', the type of @w}}
  graph.write @w, %y : tensor<3x2xf32>
  return
}

// -----

func.func @unknown(%p: tensor<8xf32>, %s: tensor<16xf32>) {
  // expected-error @below {{'graph.branch_update' op has rule 'lamb', expected sgd, momentum, lion, adagrad or adam}}
  %0 = graph.branch_update "lamb" %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @uncounted(%p: tensor<8xf32>, %s: tensor<16xf32>) {
  // expected-error @below {{'graph.branch_update' op of rule 'adam' has 2 states and 2 new ones, expected 3}}
  %0:3 = graph.branch_update "adam" %p, %p, %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}
