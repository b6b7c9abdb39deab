// RUN: sed -e 's/DP/1/g;s/PADDED/128/g;s/MICRO/5/;s/SHARDS/5/;s/ORDER/local/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=ODD
// RUN: sed -e 's/DP/1/g;s/PADDED/128/g;s/MICRO/6/;s/SHARDS/3/;s/ORDER/local/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=LOCAL
// RUN: sed -e 's/DP/1/g;s/PADDED/128/g;s/MICRO/6/;s/SHARDS/3/;s/ORDER/sharded/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=SHARDED
// RUN: sed -e 's/DP/2/g;s/PADDED/128/g;s/MICRO/4/;s/SHARDS/8/;s/ORDER/sharded/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=RANKS
// RUN: sed -e 's/DP/2/g;s/PADDED/128/g;s/MICRO/3/;s/SHARDS/6/;s/ORDER/local/' %s | not dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed -e 's/DP/2/g;s/sp = 1/sp = 2/;s/PADDED/256/g;s/MICRO/2/;s/SHARDS/2/;s/ORDER/sharded/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=SEQUENCE
// RUN: sed -e 's/DP/2/g;s/sp = 1/sp = 2/;s/PADDED/256/g;s/MICRO/2/;s/SHARDS/4/;s/ORDER/sharded/' %s | not dsopt-opt -order-pipeline -place-reductions 2>&1 | FileCheck %s --check-prefix=SHARDS
// RUN: sed -e 's/DP/2/g;s/sp = 1/sp = 3/;s/PADDED/384/g;s/MICRO/2/;s/SHARDS/2/;s/ORDER/sharded/' %s | not dsopt-opt -order-pipeline -place-reductions 2>&1 | FileCheck %s --check-prefix=ODDSP
// RUN: sed -e 's/DP/1/g;s/sp = 1/sp = 2/;s/PADDED/128/g;s/MICRO/2/;s/SHARDS/1/;s/ORDER/local", sequence_shards = 4 : i64, init = "model/' %s | not dsopt-opt -order-pipeline -place-reductions 2>&1 | FileCheck %s --check-prefix=APART

// One block, one accumulator. Shards are added along the binary tree whose odd
// nodes are carried up; the sum is the state itself where one rank has it all.
module attributes {dsopt.options = {dp = DP : i64, zero = 2 : i64, micro_batches = MICRO : i64, reduction_shards = SHARDS : i64, accumulate = "ORDER"}} {
  dist.grid @grid [pp = 1, edp = DP, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
  graph.state @w.grad.0 : tensor<128xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded PADDED over [edp, ep, sp] zero 2
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>, exec.parameter = @w}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
    return %p : tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %loss = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<f32>
    graph.run @block0.W(%x, %seed) : (tensor<4xf32>, tensor<f32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w : tensor<128xf32>
    %0 = graph.sgd %p, %p, %s {functions = #graph.functions<kernel = @update.sgd>} : (tensor<128xf32>, tensor<128xf32>, tensor<16xf32>) -> tensor<128xf32>
    graph.write @w, %0 : tensor<128xf32>
    return
  }
}

// ((0 + 1) + (2 + 3)) + 4
// ODD: exec.run @block0.W {{.*}}@b0.grad.0] micro_batch 0 on @compute
// ODD: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 1 on @compute
// ODD: exec.add @b0.grad.0, @b0.whole.0.1 elements 128 : f32 on @compute
// ODD: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 2 on @compute
// ODD: exec.run @block0.W {{.*}}@b0.whole.0.2] micro_batch 3 on @compute
// ODD-NEXT: exec.add @b0.whole.0.1, @b0.whole.0.2
// ODD-NEXT: exec.add @b0.grad.0, @b0.whole.0.1
// ODD: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 4 on @compute
// ODD-NEXT: exec.add @b0.grad.0, @b0.whole.0.1
// ODD-NEXT: exec.norm @b0.grad.0 of @b0 to @norms on @compute
// ODD-NEXT: exec.update @update.sgd of @b0
// ODD-NEXT: exec.wait
// ODD-NEXT: exec.agree

// ((0 then 1) + (2 then 3)) + (4 then 5)
// LOCAL: exec.run @block0.W {{.*}}@b0.grad.0] micro_batch 0 on @compute
// LOCAL: exec.run @block0.W {{.*}}@b0.grad.0] micro_batch 1 accumulate on @compute
// LOCAL: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 2 on @compute
// LOCAL: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 3 accumulate on @compute
// LOCAL-NEXT: exec.add @b0.grad.0, @b0.whole.0.1
// LOCAL: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 4 on @compute
// LOCAL: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 5 accumulate on @compute
// LOCAL-NEXT: exec.add @b0.grad.0, @b0.whole.0.1

// Positions 0, 1, 2 are index 0 of the three shards, 3, 4, 5 index 1.
// SHARDED: exec.run @block0.W {{.*}}@b0.grad.0] micro_batch 0 on @compute
// SHARDED: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 1 on @compute
// SHARDED-NEXT: exec.add @b0.grad.0, @b0.whole.0.1
// SHARDED: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 2 on @compute
// SHARDED-NEXT: exec.add @b0.grad.0, @b0.whole.0.1
// SHARDED: exec.run @block0.W {{.*}}@b0.whole.0.0] micro_batch 3 on @compute
// SHARDED: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 4 on @compute
// SHARDED-NEXT: exec.add @b0.whole.0.0, @b0.whole.0.1
// SHARDED: exec.run @block0.W {{.*}}@b0.whole.0.1] micro_batch 5 on @compute
// SHARDED-NEXT: exec.add @b0.whole.0.0, @b0.whole.0.1
// SHARDED-NEXT: exec.add @b0.grad.0, @b0.whole.0.0

// Four shards a rank: floor(log2 4) partial sums beside the one in flight.
// RANKS-DAG: exec.buffer @b0.whole.0.0 {{.*}} buffers
// RANKS-DAG: exec.buffer @b0.whole.0.1 {{.*}} reduction
// RANKS-DAG: exec.buffer @b0.whole.0.2 {{.*}} reduction
// RANKS: exec.schedule
// RANKS: exec.add @b0.whole.0.0, @b0.whole.0.1
// RANKS: exec.add @b0.whole.0.1, @b0.whole.0.2
// RANKS: exec.add @b0.whole.0.0, @b0.whole.0.1
// RANKS: exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
// RANKS-NOT: exec.reduce

// Each micro-batch's is added over all ranks of dp and sp, and then to that of those before.
// SEQUENCE: exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
// SEQUENCE: exec.reduce {{.*}} to @b0.grad.0 elements 64 : f32 accumulate order 1 over @dp on @comm

// SHARDS: error: reduction-shards is 4 with dp 2 and sp 2: expected V = dp where sp is above 1
// ODDSP: error: sp is 3 with dp 2: expected a power of two where dp is above 1
// APART: error: accumulate is local with 2 micro-batches and 2 sequence shards a rank, whose sums it would have to keep apart: expected sharded

// ERROR: error: reduction-shards is 6, expected 2 (dp) times a power of two
