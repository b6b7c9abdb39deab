// Kernels, functions and gradients of one's own. One message says what was got and what was expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

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
