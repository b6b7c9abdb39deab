// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -place-collectives

graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
// expected-error@+1 {{reads parameter @w, which no bucket holds}}
func.func private @block0.F() -> tensor<8xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w : tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
graph.state @w.grad.0 : tensor<8xf32> gradient of @w block 0
// expected-error@+1 {{accumulates the gradient of @w, which no bucket holds}}
func.func private @block0.F(%x: tensor<8xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  graph.accumulate @w.grad.0, %x : tensor<8xf32>
  return
}
