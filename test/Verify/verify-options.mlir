// RUN: dsopt-opt %s -verify-exec -o /dev/null

// One position, one rank, two micro-batches. Options that say something else are refused: programs
// are run as they were built.

// RUN: sed -e 's/micro_batches = 2/micro_batches = 4/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BATCHES
// BATCHES: error: 'exec.program' op runs 2 micro-batches, but dsopt.options says that micro_batches is 4

// RUN: sed -e 's/pp = 1/pp = 2/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: error: has programs of 1 positions, but the grid has 2 along pp, and dsopt.options says that pp is 2

// RUN: sed -e 's/{dp = 1/{dp = 2/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: error: has a grid of 1 data-parallel ranks, but dsopt.options says that dp is 2

// RUN: sed -e 's/{dp = 1/{tp = 2 : i64, dp = 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TENSOR
// TENSOR: error: has a grid of 1 tensor-parallel ranks, but dsopt.options says that tp is 2

// RUN: sed -e 's/{dp = 1/{sp = 2 : i64, dp = 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// SEQUENCE: error: has a grid of 1 sequence-parallel ranks, but dsopt.options says that sp is 2

// RUN: sed -e 's/dp = 1/dp = 2/g' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: 'dist.bucket' op is padded to 64 elements, expected 64 rounded up to a multiple of 128 (2 ranks x 64)

// RUN: sed -e 's/dp = 1/dp = 2/g;s/padded 64/padded 128/;s/ frozen//' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: 'dist.bucket' op is not what dsopt.options says: zero is 3, but it is cut by stage 0

// RUN: sed -e 's/{dp = 1/{gradient_type = "fp32", dp = 1/;s/ frozen//;s/zero 0/zero 0 gradient bf16/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: 'dist.bucket' op is not what dsopt.options says: gradient_type is fp32, but it has gradients of 'bf16'
module attributes {dsopt.options = {dp = 1 : i64, micro_batches = 2 : i64, pp = 1 : i64, zero = 3 : i64},
                   exec.inputs = [{ignore_index = -100 : i64, label = false, name = "x", type = tensor<16xf32>}]} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<16xf32> from "m" at 0 bytes 64 frozen
  dist.bucket @b0.frozen : f32 of [0] [#dist.range<@w, 0, 16>] elements 64 padded 64 over [edp, ep, sp] zero 0 frozen
  func.func private @block0.E(memref<16xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>})
    attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @x : memref<16xf32> activations slots 1 stride 64
    exec.buffer @loss : memref<f32> activations slots 2 stride 64
    exec.schedule {
      %0 = exec.input "x" to @x micro_batch 0 on @compute
      %1 = exec.run @block0.E [@x, @loss] micro_batch 0 on @compute
      %2 = exec.input "x" to @x micro_batch 1 on @compute
      %3 = exec.run @block0.E [@x, @loss[1]] micro_batch 1 on @compute
      exec.wait %3 on @comm
      %4 = exec.agree norms [] losses [@loss, @loss[1]] order 0 over @world on @comm
    }
  }
}
