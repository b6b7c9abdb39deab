// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -split-parts

// What no part computes: a parameter.
module {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  func.func private @block0.F() -> tensor<8x8xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w : tensor<8x8xf32>
    // expected-error@+1 {{takes what does not lie by itself, expected a value that its block makes}}
    %y = dist.all_reduce %w over [tp] : tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }
  func.func @micro_batch() -> tensor<8x8xf32> {
    %0 = graph.run @block0.F() : () -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
