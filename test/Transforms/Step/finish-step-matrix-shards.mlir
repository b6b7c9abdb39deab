// RUN: sed -e 's/ZERO/2/g' -e 's/TP/2/;s/COLUMNS/40/g;s/BYTES/1600/;s/SHARDS/4/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=SLICED
// RUN: sed -e 's/ZERO/0/g' -e 's/TP/2/;s/COLUMNS/40/g;s/BYTES/1600/;s/SHARDS/4/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=WHOLE
// RUN: sed -e 's/ZERO/1/g' -e 's/TP/1/;s/COLUMNS/20/g;s/BYTES/800/;s/SHARDS/2/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=ALONE
// RUN: sed -e 's/ZERO/2/g' -e 's/TP/2/;s/COLUMNS/40/g;s/BYTES/1600/;s/SHARDS/4/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o %t
// RUN: sed 's/\(exec.transform .*@b0.directions+\)1024/\11536/' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: sed 's/elements 228/elements 100/' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE

// A matrix of four tensor shards, two a rank: the direction is gathered from slices, then from the ranks along tp, where whole
// buckets follow each other. All shards are made at their places, and each rank updates its slice of its own.

// SLICED-DAG: exec.buffer @b0.directions : memref<512xf32> buffers
// SLICED-DAG: exec.buffer @b0.matrices : memref<512xf32> buffers
// SLICED: exec.update @update.muon.direction of @b0
// SLICED: exec.gather @b0.grad.0 to @b0.direction bytes 512 all_gather order {{.*}} over @dp on @comm
// SLICED: exec.gather @b0.direction to @b0.directions bytes 1024 all_gather order {{.*}} over @tp on @tensor
// SLICED: exec.transform @muon.of.4 of @b0 [@b0.directions, @b0.directions+512, @b0.directions+1024, @b0.directions+1536, @b0.matrices, @b0.matrices+512, @b0.matrices+1024, @b0.matrices+1536] elements 228 sliced temp @temp.448 on @compute
// SLICED: exec.update @update.muon of @b0 [@b0.param+512*edp, @b0.matrices+512*edp+1024*tp, @b0.momentum] elements 128 sliced unpadded
// SLICED: exec.transform @muon.10x10 of @b1 [@b1.direction, @b1.matrices] elements 100 sliced temp

// WHOLE: exec.agree
// WHOLE-NOT: over @dp
// WHOLE: exec.gather @b0.grad.0 to @b0.directions bytes 1024 all_gather order {{.*}} over @tp on @tensor
// WHOLE: exec.update @update.muon of @b0 [@b0.param, @b0.matrices+1024*tp, @b0.momentum] elements 256 unpadded

// ALONE-NOT: over @tp on
// ALONE: exec.gather @b0.grad.0+512*edp to @b0.grad.0 bytes 512 all_gather
// ALONE: exec.transform @muon.of.2 of @b0 [@b0.grad.0, @b0.grad.0+512, @b0.matrices, @b0.matrices+512] elements 228 sliced
// ALONE: exec.update @update.muon of @b0 [@b0.param+512*edp, @b0.matrices+512*edp, @b0.momentum] elements 128 sliced unpadded

// ELSEWHERE: error: 'exec.transform' op of @b0 {{.*}} expected one for each place, between direction and update, sliced as they are
// NONE: error: {{.*}}takes what is made of @w whole, but nothing makes it
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = ZERO : i64, micro_batches = 2 : i64, schedule = "gpipe"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = TP]
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<10xCOLUMNSxf32> from "m" at 1200 bytes BYTES
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 1200 bytes 400 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<10 every COLUMNS step 20>}
  graph.parameter @v0 : tensor<10x10xf32> from "m" at 1200 bytes 400 {name = "w", part_of = @w, part_begin = 10 : i64, part_runs = #graph.runs<10 every COLUMNS step 20>}
  graph.parameter @w1 : tensor<10x10xf32> from "m" at 400 bytes 400
  graph.state @w0.grad.0 : tensor<10x10xf32> gradient of @w0 block 0
  graph.state @v0.grad.0 : tensor<10x10xf32> gradient of @v0 block 0
  graph.state @w1.grad.0 : tensor<10x10xf32> gradient of @w1 block 1
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>, #dist.range<@v0, 128, 100>] elements 256 padded 256 over [edp, ep, sp] distinct over [tp] zero ZERO states [#dist.state<"momentum" : f32>]
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"momentum" : f32>]
  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @v0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.0}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w0.grad.0}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @v0.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @muon.10x10(memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 448 : i64, graph.matrix_update}
  func.func private @muon.of.2(memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 448 : i64, graph.matrix_update}
  func.func private @muon.of.4(memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 448 : i64, graph.matrix_update}
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
    %0:2 = graph.muon %p, %p, %p, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.of.SHARDS>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    %o = graph.read @v0 : tensor<10x10xf32>
    %1:2 = graph.muon %o, %o, %o, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.of.SHARDS>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    %q = graph.read @w1 : tensor<10x10xf32>
    %2:2 = graph.muon %q, %q, %q, %s {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    graph.write @v0, %1#0 : tensor<10x10xf32>
    graph.write @w1, %2#0 : tensor<10x10xf32>
    return
  }
}
