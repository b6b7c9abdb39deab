// Element by element, random numbers and reductions, softmax and losses. One message says what was got and what was expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

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

func.func @bits(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.and' op has operands of element type 'f32', expected integers or i1}}
  %0 = graph.and %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dynamic(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.relu' op operand #0 must be statically shaped tensor of floating-point or integer values, but got 'tensor<?xf32>'}}
  %0 = graph.relu %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @stopped(%i: tensor<3xi64>) {
  // expected-error @below {{'graph.stop_gradient' op operand #0 must be statically shaped tensor of floating-point values, but got 'tensor<3xi64>'}}
  %0 = graph.stop_gradient %i : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @dropout_key(%x: tensor<4xf32>, %k: tensor<4xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.dropout' op has a key of type 'tensor<4xi32>', expected 'tensor<7xi32>'}}
  %0 = graph.dropout %x, %k, %s {ratio = 0.5 : f64} : (tensor<4xf32>, tensor<4xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_ratio(%x: tensor<4xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.dropout' op has ratio 1.5}}
  %0 = graph.dropout %x, %k, %s {ratio = 1.5 : f64} : (tensor<4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @uniform_key(%k: tensor<4xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.uniform' op has a key of type 'tensor<4xi32>', expected 'tensor<7xi32>'}}
  %0 = graph.uniform %k, %s : (tensor<4xi32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @uniform_type(%k: tensor<7xi32>, %s: tensor<2xi32>) {
  // expected-error @below {{'graph.uniform' op has a result of type 'tensor<4xf64>', expected f32}}
  %0 = graph.uniform %k, %s : (tensor<7xi32>, tensor<2xi32>) -> tensor<4xf64>
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
