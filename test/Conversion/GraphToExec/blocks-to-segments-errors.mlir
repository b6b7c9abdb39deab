// RUN: dsopt-opt %s -attach-target=arch=x86-64-v3 -blocks-to-segments -split-input-file -verify-diagnostics

func.func private @block0.F(%x: tensor<4xf32>) -> tensor<2x2xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-error @below {{result 0 is an argument, a parameter or a constant of the block, expected a value that the block computes}}
  return %0 : tensor<2x2xf32>
}

// -----

func.func private @block0.F(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<16xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %0 = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = graph.reshape %0 : (tensor<4x4xf32>) -> tensor<16xf32>
  // expected-error @below {{result 1 has the bytes of another result, expected a value of its own}}
  return %0, %1 : tensor<4x4xf32>, tensor<16xf32>
}

// -----

func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error @below {{'graph.exp' op is in a block, expected kernels, routines, reads and accumulations}}
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @block0.F(%x: tensor<4x4xf8E5M2>) -> tensor<4x4xf8E5M2> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error @below {{is a product of 'f8E5M2', expected f32, bf16, f16 or f64}}
  %0 = graph.matmul %x, %x : (tensor<4x4xf8E5M2>, tensor<4x4xf8E5M2>) -> tensor<4x4xf8E5M2>
  return %0 : tensor<4x4xf8E5M2>
}

// -----

func.func private @block0.W(%d: tensor<3x7xf32>, %i: tensor<7xi64>) -> tensor<3x5xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
  // expected-error @below {{scatters along axis 1, expected axis 0}}
  %0 = graph.gather_grad %d, %i {axis = 1 : i64} : (tensor<3x7xf32>, tensor<7xi64>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

graph.parameter @w : tensor<4xf32> from "model.onnx" at 0 bytes 16
graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
func.func private @block0.W(%d: tensor<4xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
  graph.accumulate @w.grad.0, %d : tensor<4xf32>
  // expected-error @below {{adds to @w.grad.0 a second time in this block, expected one gradient}}
  graph.accumulate @w.grad.0, %d : tensor<4xf32>
  return
}

// -----

func.func private @block0.F(%q: tensor<1x1x4x4xf64>) -> tensor<1x1x4x4xf64>
    attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  // expected-error @below {{works on 'f64', expected f32, bf16 or f16}}
  %r, %lse = graph.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<1x1x4x4xf64>, tensor<1x1x4x4xf64>, tensor<1x1x4x4xf64>) -> (tensor<1x1x4x4xf64>, tensor<1x1x4xf32>)
  return %r : tensor<1x1x4x4xf64>
}
