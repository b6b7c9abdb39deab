// RUN: dsopt-opt %s -order-pipeline -split-input-file -verify-diagnostics

graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
graph.state @w.grad.0 : tensor<4xbf16> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4>] elements 64 padded 64 over [edp, ep, sp] zero 0 gradient bf16
func.func private @block0.W(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) {
  // expected-error @below {{segment @block0.W has a gradient of 'f32', expected 'bf16', as bucket @b0 has}}
  graph.run @block0.W(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

// Forward reads what a micro-batch leaves of a buffer.
module attributes {dsopt.options = {dp = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  // expected-error @below {{forward reads buffer @mean and changes it, so that each micro-batch needs what the one before it left: expected one micro-batch a step, got 4 (2 dp x 2)}}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<f32>, tensor<3xf32> {graph.statistic = @mean, graph.momentum = 0.0 : f64, graph.sequential}) {
    %0 = graph.constant dense<0.0> : tensor<f32>
    %1 = graph.constant dense<0.0> : tensor<3xf32>
    return %0, %1 : tensor<f32>, tensor<3xf32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    dist.release %w : tensor<64xf32>
    // expected-error @below {{adds to the gradient of bucket @b0, which no dist.reduce adds over its 2 ranks}}
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    dist.release %w : tensor<64xf32>
    // expected-error @below {{of @b0 comes before a run that adds to the gradient}}
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    dist.release %w : tensor<64xf32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    // expected-error @below {{of @b0 comes a second time}}
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    // expected-error @below {{is never released}}
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    // expected-note @below {{the gather is here}}
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    dist.release %w : tensor<64xf32>
    // expected-error @below {{uses a value of a gather behind its release}}
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  // expected-note @below {{the bucket is here}}
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<64xf32> {exec.access = #exec.access<read>, exec.parameter = @w}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    // expected-error @below {{segment @block0.F reads @w, of which each of 2 ranks holds a slice, expected a value of dist.gather}}
    %loss = graph.run @block0.F(%x) : (tensor<64xf32>) -> tensor<f32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    // expected-error @below {{gathers what is whole on every rank}}
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    dist.release %w : tensor<64xf32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) -> tensor<f32> {
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
    %loss = graph.run @block0.F(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    dist.release %w : tensor<64xf32>
    // expected-error @below {{expected graph.run and dist's collectives only}}
    %c = graph.constant dense<0.0> : tensor<f32>
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  // expected-error @below {{is kept in host memory, but partitioned by stage 2, expected 3: blocks read it where it lies}}
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2 in host
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) {
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  // expected-error @below {{is kept in disk memory, but partitioned by stage 2, expected 3: blocks read it where it lies}}
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2 in disk
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) {
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func @micro_batch(%x: tensor<64xf32> {graph.name = "x"}) {
    graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
    // expected-error @below {{asks for the order fast, which only NCCL has, expected canonical}}
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32 order fast
    return
  }
}

// -----

// expected-error @below {{schedule 1f1b has a chunk of blocks at each of stages 0, but the blocks are cut into chunks at stages 0, 0: -schedule is what it was when they were cut}}
module attributes {dsopt.options = {pp = 1 : i64}} {
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 1 : i64, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{schedule interleaved has a chunk of blocks at each of stages 0, 1, 0, 1, but the blocks are cut into chunks at stages 0, 1}}
module attributes {dsopt.options = {pp = 2 : i64, schedule = "interleaved", micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{schedule interleaved got 3 micro-batches a rank for 2 stages, expected a multiple of 2}}
module attributes {dsopt.options = {pp = 2 : i64, schedule = "interleaved", micro_batches = 3 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{chunk 1 has no blocks, expected at least one of the model's in each of 3 chunks}}
module attributes {dsopt.options = {pp = 1 : i64, schedule = "interleaved"}} {
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 2 : i64, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{chunk 1 starts with block 0, expected block 2, behind those of chunk 0}}
module attributes {dsopt.options = {pp = 1 : i64, schedule = "interleaved"}} {
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 1 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{stage 1 has none of the 2 chunks, expected at least one in each of 2 stages}}
module attributes {dsopt.options = {pp = 2 : i64, schedule = "interleaved", micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 1 : i64, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

module attributes {dsopt.options = {pp = 2 : i64, schedule = "interleaved", micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // expected-error @below {{chunk 0 is on stages 0 and 1, expected one}}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.chunk = 0 : i64, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<4xf32>
  }
}

// -----

module attributes {dsopt.options = {tp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  func.func @evaluate(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
    // expected-error @below {{takes what no run computes, expected a result of graph.run}}
    %y = dist.all_reduce %x over [tp] : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {dsopt.options = {tp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  func.func private @block0.E(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xi32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  func.func @evaluate(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xi32> {
    %p = graph.run @block0.E(%x) : (tensor<4xf32>) -> tensor<4xi32>
    // expected-error @below {{takes values of 'i32', expected f32, bf16 or f16}}
    %y = dist.all_reduce %p over [tp] : tensor<4xi32>
    return %y : tensor<4xi32>
  }
}

// -----

module attributes {dsopt.options = {tp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  graph.parameter @mean : tensor<3xf32> from "m" at 0 bytes 12 {buffer}
  dist.bucket @b0 : f32 of [0] [#dist.range<@mean, 0, 3>] elements 64 padded 64 over [edp, ep, sp] zero 0 frozen
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<3xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<f32>, tensor<3xf32> {graph.statistic = @mean, graph.momentum = 0.0 : f64}) {
    %loss, %p = graph.run @block0.F(%x) : (tensor<4xf32>) -> (tensor<f32>, tensor<3xf32>)
    %y = dist.all_reduce %p over [tp] : tensor<3xf32>
    // expected-error @below {{returns a contribution to @mean of 3 elements, which ranks add: expected a multiple of 128}}
    return %loss, %y : tensor<f32>, tensor<3xf32>
  }
}
