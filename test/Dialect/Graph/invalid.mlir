// Every error of the dialect: one message that says what was got and what was
// expected (those of graph.round_to are in a file of their own).
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

func.func @element_types(%x: tensor<2x3xf32>, %i: tensor<3xi64>) {
  // expected-error @below {{'graph.add' op has operands of element types 'f32' and 'i64', expected equal ones}}
  %0 = graph.add %x, %i : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{'graph.mul' op has operands of types 'tensor<2x3xf32>' and 'tensor<2xf32>', expected shapes that broadcast}}
  %0 = graph.mul %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @result(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.add' op has result 0 of type 'tensor<3x2xf32>', expected 'tensor<2x3xf32>'}}
  %0 = graph.add %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @float(%i: tensor<3xi64>) {
  // expected-error @below {{'graph.exp' op has operands of element type 'i64', expected floating point}}
  %0 = graph.exp %i : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @number(%b: tensor<3xi1>) {
  // expected-error @below {{'graph.neg' op has operands of element type 'i1', expected numbers}}
  %0 = graph.neg %b : (tensor<3xi1>) -> tensor<3xi1>
  return
}

// -----

func.func @bool(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.not' op has operands of element type 'f32', expected i1}}
  %0 = graph.not %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @condition(%c: tensor<4xi1>, %x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.where' op has a condition of type 'tensor<4xi1>' and values of type 'tensor<2x3xf32>', expected shapes that broadcast}}
  %0 = graph.where %c, %x, %x : (tensor<4xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @cast(%x: tensor<2x3xf32>) {
  // expected-error @below {{op requires the same shape for all operands and results}}
  %0 = graph.cast %x : (tensor<2x3xf32>) -> tensor<3x2xi64>
  return
}

// -----

func.func @matmul_rank(%a: tensor<3xf32>, %x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.matmul' op has operands of types 'tensor<3xf32>' and 'tensor<2x3xf32>', expected equal ranks of at least 2}}
  %0 = graph.matmul %a, %x : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @matmul_type(%x: tensor<2x3xf32>, %a: tensor<3x2xf64>) {
  // expected-error @below {{'graph.matmul' op has operands of element types 'f32' and 'f64', expected equal ones}}
  %0 = graph.matmul %x, %a : (tensor<2x3xf32>, tensor<3x2xf64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @matmul_batch(%a: tensor<2x3x4xf32>, %b: tensor<1x4x3xf32>) {
  // expected-error @below {{'graph.matmul' op has operands of types 'tensor<2x3x4xf32>' and 'tensor<1x4x3xf32>', expected equal leading dimensions}}
  %0 = graph.matmul %a, %b : (tensor<2x3x4xf32>, tensor<1x4x3xf32>) -> tensor<2x3x3xf32>
  return
}

// -----

func.func @matmul_contraction(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.matmul' op contracts 3 with 2 elements, expected equal sizes}}
  %0 = graph.matmul %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @axis(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.reduce_sum' op reduces axis 2, expected 0 to 1}}
  %0 = graph.reduce_sum %x {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ascending(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.reduce_max' op has axes [1, 0], expected ascending ones}}
  %0 = graph.reduce_max %x {axes = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @cumsum(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.cumsum' op sums along axis -1 of 'tensor<2x3xf32>', expected 0 to 1}}
  %0 = graph.cumsum %x {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

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

func.func @softmax(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.softmax' op has axis -1 of 'tensor<2x3xf32>', expected 0 to 1}}
  %0 = graph.softmax %x {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @norm_axis(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{'graph.layer_norm' op has axis 2 of 'tensor<2x3xf32>', expected 0 to 1}}
  %0:3 = graph.layer_norm %x, %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @norm_scale(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{'graph.layer_norm' op has a scale of type 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %0:3 = graph.layer_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @norm_bias(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %b: tensor<1xf32>) {
  // expected-error @below {{'graph.layer_norm' op has a bias of type 'tensor<1xf32>', expected 'tensor<3xf32>'}}
  %0:3 = graph.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<1xf32>) -> (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @nll(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{'graph.nll' op has logits of type 'tensor<2x3xf32>' and labels of type 'tensor<4xi64>', expected [N, C] and [N]}}
  %0:2 = graph.nll %x, %i {ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @dynamic(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.relu' op operand #0 must be statically shaped tensor of floating-point or integer values, but got 'tensor<?xf32>'}}
  %0 = graph.relu %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

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

func.func @kernel_callee(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.kernel' op calls @k, which is no function of this module}}
  %0 = graph.kernel @k(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func private @k(tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @kernel_attribute(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.kernel' op calls @k, which is no kernel (it has no attribute graph.iterate)}}
  %0 = graph.kernel @k(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func private @k(tensor<2x3xf32>) -> tensor<2x3xf32> attributes {graph.iterate = #graph.iteration<rows>}
func.func @kernel_operands(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.kernel' op has 2 operands, expected 1}}
  %0 = graph.kernel @k(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func private @k(tensor<2x3xf32>) -> tensor<2x3xf32> attributes {graph.iterate = #graph.iteration<rows>}
func.func @kernel_types(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.kernel' op has result 0 of type 'tensor<6xf32>', expected 'tensor<2x3xf32>'}}
  %0 = graph.kernel @k(%x) : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func private @k(tensor<64xf64>) attributes {graph.iterate = #graph.iteration<flat>}
func.func @kernel_flat(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.kernel' op has operand 0 of type 'tensor<2x3xf32>', expected 'tensor<64xf64>'}}
  graph.kernel @k(%x) : (tensor<2x3xf32>) -> ()
  return
}

// -----

func.func @run_callee(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.run' op runs @b, which is no function of this module}}
  %0 = graph.run @b(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func private @k(tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @run_types(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.run' op has 0 results, expected 1}}
  graph.run @k(%x) : (tensor<2x3xf32>) -> ()
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

// -----

func.func @dropout_key(%x: tensor<4xf32>, %k: tensor<4xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.dropout' op has a key of type 'tensor<4xi32>', expected 'tensor<5xi32>'}}
  %0 = graph.dropout %x, %k, %s {ratio = 0.5 : f64} : (tensor<4xf32>, tensor<4xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @uniform_key(%k: tensor<4xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.uniform' op has a key of type 'tensor<4xi32>', expected 'tensor<5xi32>'}}
  %0 = graph.uniform %k, %s : (tensor<4xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @uniform_type(%k: tensor<5xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.uniform' op has a result of type 'tensor<4xf64>', expected f32}}
  %0 = graph.uniform %k, %s : (tensor<5xi32>, tensor<2xi32>) -> tensor<4xf64>
  return
}

// -----

func.func @bits(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.and' op has operands of element type 'f32', expected integers or i1}}
  %0 = graph.and %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_ratio(%x: tensor<4xf32>, %k: tensor<5xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.dropout' op has ratio 1.5}}
  %0 = graph.dropout %x, %k, %s {ratio = 1.5 : f64} : (tensor<4xf32>, tensor<5xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @stopped(%i: tensor<3xi64>) {
  // expected-error @below {{'graph.stop_gradient' op operand #0 must be statically shaped tensor of floating-point values, but got 'tensor<3xi64>'}}
  %0 = graph.stop_gradient %i : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

// expected-error @below {{'graph.parameter' op converts 'f16' to 'tensor<4xf64>', expected floats to f32}}
graph.parameter @w : tensor<4xf64> from "w" at 0 bytes 8 {source = f16}

// -----

func.func @given_results(%x: tensor<2xf32>) {
  // expected-error @below {{'graph.custom_gradient' op has results of types 'tensor<3xf32>', expected its values' 'tensor<2xf32>'}}
  %0 = graph.custom_gradient 0 of(%x : tensor<2xf32>) is(%x : tensor<2xf32>) saved() {
  ^bb0(%g: tensor<3xf32>):
    graph.yield %g : tensor<3xf32>
  } -> tensor<3xf32>
  return
}

// -----

func.func @given_arguments(%x: tensor<2xf32>) {
  // expected-error @below {{'graph.custom_gradient' op has a backward with arguments of types 'tensor<2xf32>', expected what is saved and the results' gradients, 'tensor<2xf32>', 'tensor<2xf32>'}}
  %0 = graph.custom_gradient 0 of(%x : tensor<2xf32>) is(%x : tensor<2xf32>) saved(%x : tensor<2xf32>) {
  ^bb0(%g: tensor<2xf32>):
    graph.yield %g : tensor<2xf32>
  } -> tensor<2xf32>
  return
}

// -----

func.func @given_gradients(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'graph.custom_gradient' op has a backward that yields 'tensor<2xf32>', expected its inputs' types 'tensor<3xf32>'}}
  %0 = graph.custom_gradient 0 of(%y : tensor<3xf32>) is(%x : tensor<2xf32>) saved() {
  ^bb0(%g: tensor<2xf32>):
    graph.yield %g : tensor<2xf32>
  } -> tensor<2xf32>
  return
}

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

func.func @part_contracts(%x: tensor<8x2048xf32>, %w: tensor<2047x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op contracts 2048 with 2047 elements, expected equal sizes}}
  %0 = graph.matmul_part %x, %w {whole = array<i64: 8, 3, 5000>} : (tensor<8x2048xf32>, tensor<2047x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @part_cuts(%x: tensor<8x2048xf32>, %w: tensor<2048x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op is the part 8x3x2048 of a product [16, 3, 5000], expected one that is cut along one dimension}}
  %0 = graph.matmul_part %x, %w {whole = array<i64: 16, 3, 5000>} : (tensor<8x2048xf32>, tensor<2048x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @part_columns(%x: tensor<8x3xf32>, %w: tensor<2048x3xf32>) {
  // expected-error @below {{'graph.matmul_part' op has a result of type 'tensor<8x2048xf32>', expected 'tensor<8x2952xf32>'}}
  %0 = graph.matmul_part %x, %w {transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<2048x3xf32>) -> tensor<8x2048xf32>
  return
}

// -----

func.func @part_addend(%x: tensor<8x2048xbf16>, %w: tensor<2048x3xbf16>, %s: tensor<8x3xbf16>) {
  // expected-error @below {{'graph.matmul_part' op adds to 'tensor<8x3xbf16>', expected fp32 of the result's shape}}
  %0 = graph.matmul_part %x, %w, %s {whole = array<i64: 8, 3, 5000>} : (tensor<8x2048xbf16>, tensor<2048x3xbf16>, tensor<8x3xbf16>) -> tensor<8x3xbf16>
  return
}

// -----

func.func @part_adds_nothing(%x: tensor<8x3xf32>, %w: tensor<2048x3xf32>, %s: tensor<8x2952xf32>) {
  // expected-error @below {{'graph.matmul_part' op adds to 'tensor<8x2952xf32>', expected nothing where all is contracted}}
  %0 = graph.matmul_part %x, %w, %s {transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<2048x3xf32>, tensor<8x2952xf32>) -> tensor<8x2952xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xbf16>) {
  // expected-error @below {{has values of types 'tensor<2x3x5x5xf32>' and 'tensor<4x3x3x3xbf16>', expected one element type}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xbf16>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{convolves 'tensor<2x3x5x5xf32>' with 'tensor<4x3x3x3xf32>' to 'tensor<2x4x5x4xf32>' (strides [1, 1], dilations [1, 1], pads [1, 1], 1 groups), expected as many places as windows fit between equal pads}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected batches and channels that fit}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 3 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected strides and dilations of 1 or more, and pads of 0 or more}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x5x5xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expected an entry of strides, dilations and pads for each dimension that is moved over}}
  %0 = graph.convolution forward %x, %w {strides = array<i64: 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error @below {{expected x, w and y of one rank from 3 to 5}}
  %0 = graph.convolution forward %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, groups = 1 : i64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @sign_bits_of_other_rows(%x: tensor<4x31xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{has elements of 'tensor<4x31xf32>' and words of 'tensor<4xi32>', expected words of i32 and a last dimension of 32 beside theirs}}
  %0 = graph.sign_bits %x : (tensor<4x31xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @unpack_bits_of_other_words(%x: tensor<4xi64>) -> tensor<4x32xf32> {
  // expected-error @+1 {{has elements of 'tensor<4x32xf32>' and words of 'tensor<4xi64>', expected words of i32}}
  %0 = graph.unpack_bits %x : (tensor<4xi64>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
