// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -verify-dist

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = "F", dist.stage = 0 : i64} {
  // expected-error@+1 {{is never released}}
  dist.gather @b0
  return
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3
func.func private @block0.F() -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = "F", dist.stage = 0 : i64} {
  // expected-error@+1 {{reads @w while @b0 is not gathered}}
  %w = graph.read @w : tensor<64xf32>
  return %w : tensor<64xf32>
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
// expected-note@+1 {{the other is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3
// expected-error@+1 {{holds @w, which lies in another too}}
dist.bucket @b1 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3

// -----

// expected-error@+1 {{has no pipeline stage, expected the attribute dist.stage}}
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = "F"} {
  return
}

// -----

// expected-error@+1 {{is on stage 2, expected 0 or 1: stages are runs of blocks}}
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = "F", dist.stage = 2 : i64} {
  return
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> "grad" of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 ranks 2 zero 3
// expected-error@+1 {{accumulates @w.grad.0, which is never reduced}}
func.func private @block0.F(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = "F", dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
