// RUN: sed -e 's/ZERO/1/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=SLICED
// RUN: sed -e 's/ZERO/2/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=PASSING
// RUN: sed -e 's/ZERO/0/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=WHOLE
// RUN: sed -e 's/ZERO/2/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o %t
// RUN: sed '/exec.update @update.muon.direction/d' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed '/exec.transform/s/ sliced//' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNSLICED
// RUN: sed '/exec.transform .*+512/d' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=LESS

// Updates that see whole matrices: where each goes, gathered whole; what is made of each; then the slices.

// SLICED-DAG: exec.buffer @b0.matrices : memref<256xf32> buffers
// SLICED-DAG: exec.buffer @temp.448 : memref<448xi8> buffers
// SLICED-NOT: @b0.direction
// SLICED: exec.agree
// SLICED: %[[D:.*]] = exec.update @update.muon.direction of @b0 [@b0.param+512*edp, @b0.grad.0+512*edp, @b0.momentum] elements 128 sliced direction on @compute
// SLICED: exec.wait %[[D]] on @comm
// SLICED: %[[ALL:.*]] = exec.gather @b0.grad.0+512*edp to @b0.grad.0 bytes 512 all_gather order {{.*}} over @dp on @comm
// SLICED: exec.wait %[[ALL]] on @compute
// SLICED: exec.transform @muon.10x10 of @b0 [@b0.grad.0, @b0.matrices] elements 100 sliced temp @temp.448 on @compute
// SLICED: exec.transform @muon.10x10 of @b0 [@b0.grad.0+512, @b0.matrices+512] elements 100 from 128 sliced temp @temp.448 on @compute
// SLICED: exec.update @update.muon of @b0 [@b0.param+512*edp, @b0.matrices+512*edp, @b0.momentum] elements 128 sliced unpadded on @compute
// SLICED: exec.update @update.muon.direction of @b1
// SLICED: exec.transform @muon.10x10 of @b1
// SLICED: exec.update @update.muon of @b1

// Where ranks have slices of gradients alone, there is a place for the whole.
// PASSING: exec.gather @b0.grad.0 to @b0.direction bytes 512 all_gather
// PASSING: exec.transform @muon.10x10 of @b0 [@b0.direction, @b0.matrices]

// WHOLE: exec.update @update.muon.direction of @b0 [@b0.param, @b0.grad.0, @b0.momentum] elements 256 direction on @compute
// WHOLE-NOT: exec.gather
// WHOLE: exec.transform @muon.10x10 of @b0 [@b0.grad.0, @b0.matrices] elements 100 temp
// WHOLE: exec.update @update.muon of @b0 [@b0.param, @b0.matrices, @b0.momentum] elements 256 unpadded on @compute

// UNSLICED: error: {{.*}}expected one for each place, between direction and update, sliced as they are
// NONE: error:
// LESS: error: {{.*}}takes what is made of @v0 whole, but nothing makes it
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = ZERO : i64, micro_batches = 2 : i64, schedule = "gpipe"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  graph.parameter @v0 : tensor<10x10xf32> from "m" at 800 bytes 400
  graph.parameter @w1 : tensor<10x10xf32> from "m" at 400 bytes 400
  graph.state @w0.grad.0 : tensor<10x10xf32> gradient of @w0 block 0
  graph.state @v0.grad.0 : tensor<10x10xf32> gradient of @v0 block 0
  graph.state @w1.grad.0 : tensor<10x10xf32> gradient of @w1 block 1
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>, #dist.range<@v0, 128, 100>] elements 256 padded 256 over [edp, ep, sp] zero ZERO states [#dist.state<"momentum" : f32>]
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"momentum" : f32>]
  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @v0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.0}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w0.grad.0}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @v0.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @muon.10x10(memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 448 : i64, graph.matrix_update}
  func.func private @update.muon.direction(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 1, 2>} {
    return %g, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.muon(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0>} {
    return %p : tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4x10xf32> {graph.name = "x"}, %y: tensor<4x10xf32> {graph.name = "y", graph.label, graph.ignore_index = -1 : i64}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h = graph.run @block0.F(%x) : (tensor<4x10xf32>) -> tensor<4x10xf32>
    %loss = graph.run @block1.F(%h) : (tensor<4x10xf32>) -> tensor<f32>
    %dh = graph.run @block1.B(%seed) : (tensor<f32>) -> tensor<4x10xf32>
    graph.run @block1.W(%h, %seed) : (tensor<4x10xf32>, tensor<f32>) -> ()
    dist.reduce @b1 use 0 of [@w1.grad.0] over [edp, ep, sp] as f32
    graph.run @block0.W(%x, %dh) : (tensor<4x10xf32>, tensor<4x10xf32>) -> ()
    dist.reduce @b0 use 0 of [@w0.grad.0, @v0.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w0 : tensor<10x10xf32>
    %0:2 = graph.muon %p, %p, %p, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    %o = graph.read @v0 : tensor<10x10xf32>
    %1:2 = graph.muon %o, %o, %o, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    %q = graph.read @w1 : tensor<10x10xf32>
    %2:2 = graph.muon %q, %q, %q, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    graph.write @v0, %1#0 : tensor<10x10xf32>
    graph.write @w1, %2#0 : tensor<10x10xf32>
    return
  }
}
