// RUN: sed -e 's/RANKS/2/g;s/PADDED/128/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s
// RUN: sed -e 's/RANKS/1/g;s/PADDED/64/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=ONE
// RUN: sed -e 's/RANKS/2/g;s/PADDED/128/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o /dev/null

// What micro-batches contribute to running statistics lies side by side to the step's end; after the
// agreement all ranks' contributions are folded. @var lies behind @mean: 12 bytes of 20.
module attributes {dsopt.options = {dp = RANKS : i64, pp = 1 : i64, zero = 0 : i64, micro_batches = 2 : i64, schedule = "gpipe"}} {
  dist.grid @grid [pp = 1, edp = RANKS, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.parameter @mean : tensor<3xf32> from "m" at 256 bytes 12 frozen {statistic}
  graph.parameter @var : tensor<2xf32> from "m" at 268 bytes 8 frozen {statistic}
  graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded PADDED over [edp, ep, sp] zero 0
  dist.bucket @b0.statistics : f32 of [0] [#dist.range<@mean, 0, 3>, #dist.range<@var, 64, 2>] elements 128 padded 128 over [edp, ep, sp] zero 0 frozen
  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<3xf32> {exec.access = #exec.access<write>}, memref<1x2xf32> {exec.access = #exec.access<write>}, memref<64xf32> {exec.access = #exec.access<read>, exec.parameter = @w}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<3xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
    return %p : tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4x10xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed})
      -> (tensor<f32>, tensor<3xf32> {graph.statistic = @mean, graph.momentum = 0.9 : f64}, tensor<1x2xf32> {graph.statistic = @var, graph.momentum = 0.5 : f64}) {
    %loss, %m, %v = graph.run @block0.F(%x) : (tensor<4x10xf32>) -> (tensor<f32>, tensor<3xf32>, tensor<1x2xf32>)
    graph.run @block0.W(%m) : (tensor<3xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    return %loss, %m, %v : tensor<f32>, tensor<3xf32>, tensor<1x2xf32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w : tensor<64xf32>
    %0 = graph.sgd %p, %p, %s {functions = #graph.functions<kernel = @update.sgd>} : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
    graph.write @w, %0 : tensor<64xf32>
    return
  }
}

// CHECK-DAG: exec.buffer @statistics : memref<40xi8> activations slots 1
// CHECK-DAG: exec.buffer @statistics.all : memref<80xi8> activations slots 1
// CHECK-DAG: exec.buffer @b0.statistics.param : memref<128xf32> parameters slots 1 {{.*}} persistent
// CHECK: exec.run @block0.F {{.*}}@statistics, @statistics+12{{.*}} micro_batch 0
// CHECK: exec.run @block0.F {{.*}}@statistics+20, @statistics+32{{.*}} micro_batch 1
// CHECK: exec.run @block0.W [@statistics
// CHECK: exec.gather @statistics to @statistics.all bytes 40 all_gather
// CHECK: exec.agree
// CHECK: exec.fold @statistics.all bytes 20 into [@b0.statistics.param, @b0.statistics.param+256]
// CHECK-SAME: places [0, 12] elements [3, 2] momenta [9.000000e-01, 5.000000e-01] on @compute
// ONE-NOT: statistics.all
// ONE: exec.fold @statistics bytes 20
