// RUN: dsopt-opt %s -verify-exec -o /dev/null

// An evaluation finds what the step keeps where the step keeps it, and writes nothing else there.

// RUN: sed -e '/^  exec.program @evaluate0/,$s/@b0.param at 0/@b0.param at 1024/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MOVED
// MOVED: error: 'exec.buffer' op of @evaluate0 lies at bytes 1024 to 1280, expected the place that the step's program gives it, 0 to 256
// MOVED: note: its buffer is here
// RUN: sed -e '/^  exec.program @evaluate0/,$s/@loss at 768/@loss at 448/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'exec.buffer' op of @evaluate0 lies at bytes 448 to 512, expected none of what the step's program keeps in 256 to 512
// KEPT: note: its buffer is here

module attributes {dsopt.options = {dp = 1 : i64}} {
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @world over [pp, edp, ep, sp, tp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0 states [#dist.state<"m" : f32>]
  func.func private @kernel(tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>}
  func.func private @block0.F(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.E(memref<64xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device bytes 1280 bound 1280
    exec.buffer @b0.param at 0 : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b0.m at 256 : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    exec.buffer @b0.grad.0 at 512 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @loss at 768 : memref<f32> activations slots 1 stride 64
    exec.buffer @norms at 832 : memref<21xi64> buffers slots 1 stride 192
    exec.schedule {
      %f = exec.run @block0.F [@b0.param, @loss] micro_batch 0 on @compute
      %w = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
      %n = exec.norm @b0.grad.0 of @b0 to @norms on @compute
      %u = exec.update @kernel of @b0 [@b0.param, @b0.grad.0, @b0.m] elements 64 on @compute
      exec.wait %u on @comm
      %a = exec.agree norms [@norms] losses [@loss] order 0 over @world on @comm
    }
  }
  exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
    exec.memory @device device bytes 1280 bound 1280
    exec.buffer @b0.param at 0 : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @loss at 768 : memref<f32> activations slots 1 stride 64
    exec.schedule {
      %e = exec.run @block0.E [@b0.param, @loss] micro_batch 0 on @compute
      exec.wait %e on @comm
      %a = exec.agree norms [] losses [@loss] order 0 over @world on @comm
    }
  }
}
