// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -place-reductions

module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64, micro_batches = 2 : i64, accumulate = "local"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
  graph.state @w.grad.0 : tensor<128xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 2
  func.func private @block0.W(memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  exec.stream @compute compute
  exec.stream @comm communication
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.whole.0.0 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.schedule {
      %0 = exec.run @block0.W [@b0.whole.0.0] micro_batch 0 on @compute
      // expected-error @below {{adds to the gradient of bucket @b0 on micro-batch 1 before that of micro-batch 0 is reduced}}
      %1 = exec.run @block0.W [@b0.whole.0.0] micro_batch 1 on @compute
      %2 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
    }
  }
}

// -----

module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64, micro_batches = 2 : i64, accumulate = "local"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @comm communication
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.whole.0.0 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.schedule {
      // expected-error @below {{of @b0.whole.0.0, to which no run before it adds}}
      %2 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
    }
  }
}

// -----

module attributes {dsopt.options = {dp = 1 : i64, micro_batches = 2 : i64}} {
  graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
  graph.state @w.grad.0 : tensor<128xf32> gradient of @w block 0
  func.func private @block0.W(memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  exec.stream @compute compute
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.schedule {
      // expected-error @below {{adds to @w.grad.0, the gradient of what no bucket of its block holds}}
      %0 = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
    }
  }
}

// -----

module attributes {dsopt.options = {dp = 1 : i64, micro_batches = 2 : i64}} {
  exec.stream @compute compute
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.schedule {
      // expected-error @below {{runs @block0.W, which is no segment of this module}}
      %0 = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
    }
  }
}

// -----

// expected-error @below {{reduction-shards is 3, expected a divisor of the step's 2 micro-batches}}
module attributes {dsopt.options = {dp = 1 : i64, micro_batches = 2 : i64, reduction_shards = 3 : i64}} {
}
