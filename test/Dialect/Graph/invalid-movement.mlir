// What moves elements: shapes, slices, gathers, windows. One message says what was got and what was expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func @reshape_type(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.reshape' op has element type 'f32' and result element type 'f64', expected equal ones}}
  %0 = graph.reshape %x : (tensor<2x3xf32>) -> tensor<6xf64>
  return
}

// -----

func.func @reshape_count(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.reshape' op has 6 elements and a result of 7, expected as many}}
  %0 = graph.reshape %x : (tensor<2x3xf32>) -> tensor<7xf32>
  return
}

// -----

func.func @expand_type(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.expand' op has element type 'f32' and result element type 'f64', expected equal ones}}
  %0 = graph.expand %x : (tensor<2x3xf32>) -> tensor<2x3xf64>
  return
}

// -----

func.func @expand_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.expand' op expands 'tensor<2x3xf32>' to 'tensor<1x3xf32>', expected a shape it broadcasts to}}
  %0 = graph.expand %x : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @perm_entries(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.transpose' op has 1 entries in perm, expected one for each of the 2 dimensions}}
  %0 = graph.transpose %x {perm = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @perm(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.transpose' op has perm [1, 1], expected a permutation of 0 to 1}}
  %0 = graph.transpose %x {perm = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @concat_none() {
  // expected-error @below {{'graph.concat' op has no operands, expected at least one}}
  %0 = "graph.concat"() {axis = 0 : i64} : () -> tensor<0xf32>
  return
}

// -----

func.func @concat_axis(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.concat' op has axis 2 of 'tensor<2x3xf32>', expected 0 to 1}}
  %0 = graph.concat %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_types(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) {
  // expected-error @below {{'graph.concat' op has operands of types 'tensor<2x3xf32>' and 'tensor<3x2xf32>', expected types that differ in dimension 1 only}}
  %0 = graph.concat %x, %y {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @slice_entries(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice' op has 1 starts, expected one for each of the 2 dimensions}}
  %0 = graph.slice %x {starts = array<i64: 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_step(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice' op has step 0 in dimension 1, expected another}}
  %0 = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_size(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice' op has size -3 in dimension 1, expected at least 0}}
  %0 = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 2, -3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_range(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice' op spans elements -1 to 1 of dimension 1, expected 0 to 2}}
  %0 = graph.slice %x {starts = array<i64: 0, 1>, sizes = array<i64: 2, 3>, steps = array<i64: 1, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_grad_type(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice_grad' op has an operand of type 'tensor<2x3xf32>' and a result of type 'tensor<6xf32>', expected equal element types and ranks}}
  %0 = graph.slice_grad %x {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @slice_grad_range(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.slice_grad' op spans elements 1 to 2 of dimension 0, expected 0 to 1}}
  %0 = graph.slice_grad %x {starts = array<i64: 1, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_entries(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.pad' op has 1 highs, expected one for each of the 2 dimensions}}
  %0 = graph.pad %x {lows = array<i64: 0, 0>, highs = array<i64: 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.pad' op pads with a value of type 'i64', expected 'f32'}}
  %0 = graph.pad %x {lows = array<i64: 0, 0>, highs = array<i64: 0, 0>, value = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_crop(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.pad' op crops dimension 0 of 'tensor<2x3xf32>' to -1 elements, expected at least 0}}
  %0 = graph.pad %x {lows = array<i64: -2, 0>, highs = array<i64: -1, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{'graph.gather' op has axis 5 of 'tensor<2x3xf32>', expected 0 to 1}}
  %0 = graph.gather %x, %i {axis = 5 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_grad(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{'graph.gather_grad' op has a gradient of type 'tensor<2x3xf32>', expected 'tensor<4x3xf32>'}}
  %0 = graph.gather_grad %x, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<9x3xf32>
  return
}

// -----

func.func @gather_elements(%x: tensor<2x3xf32>, %i: tensor<3x1xi64>) {
  // expected-error @below {{'graph.gather_elements' op has data of type 'tensor<2x3xf32>' and indices of type 'tensor<3x1xi64>', expected equal ranks and no larger indices but along axis 1}}
  %0 = graph.gather_elements %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
  return
}

// -----

func.func @one_hot(%i: tensor<4xi64>) {
  // expected-error @below {{'graph.one_hot' op has depth 0, expected at least 1}}
  %0 = graph.one_hot %i {depth = 0 : i64} : (tensor<4xi64>) -> tensor<4x0xf32>
  return
}

// -----

func.func @windows_axis(%x: tensor<5x3xf32>) {
  // expected-error @below {{'graph.windows' op has windows over 1 dimensions from 2 on of 'tensor<5x3xf32>', expected dimensions that it has}}
  %0 = graph.windows %x {axis = 2, counts = array<i64: 3>, kernel = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<5x3xf32>) -> tensor<3x2x3xf32>
  return
}

// -----

func.func @windows_stride(%x: tensor<5x3xf32>) {
  // expected-error @below {{'graph.windows' op has windows with counts, kernel, strides or dilations of [0], expected 1 or more}}
  %0 = graph.windows %x {axis = 0, counts = array<i64: 3>, kernel = array<i64: 2>, strides = array<i64: 0>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<5x3xf32>) -> tensor<3x2x3xf32>
  return
}

// -----

func.func @windows_sum(%x: tensor<3x2x3xf32>) {
  // expected-error @below {{'graph.windows_sum' op has windows of type 'tensor<3x2x3xf32>' and a result of type 'tensor<5x4xf32>', expected 'tensor<5x3xf32>'}}
  %0 = graph.windows_sum %x {axis = 0, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<3x2x3xf32>) -> tensor<5x4xf32>
  return
}

// -----

func.func @scatter(%d: tensor<4x2xf32>, %i: tensor<3xi64>, %u: tensor<3x3xf32>) {
  // expected-error @below {{'graph.scatter' op has operands of types 'tensor<4x2xf32>', 'tensor<3xi64>' and 'tensor<3x3xf32>', expected [N, W], [M] and [M, W]}}
  %0 = graph.scatter set %d, %i, %u : (tensor<4x2xf32>, tensor<3xi64>, tensor<3x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @scatter_mode(%d: tensor<4x2xf32>, %i: tensor<3xi64>, %u: tensor<3x2xf32>) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'mode' [set, add, mul, min, max]}}
  %0 = graph.scatter xor %d, %i, %u : (tensor<4x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return
}
