// RUN: sed -e 's/ZERO/1/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=SLICED
// RUN: sed -e 's/ZERO/0/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=WHOLE
// RUN: sed -e 's/ZERO/1/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o /dev/null
// RUN: sed -e 's/ZERO/1/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory | sed '/sliced direction/d' | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/ZERO/1/g' -e 's/module attributes {/module attributes {dsopt.target = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 1, vector_bits = 128, features = []>, /' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step | FileCheck %s --check-prefix=DEVICE
// RUN: sed -e 's/ZERO/1/g' -e 's/tp = 1\]/tp = 2]/' -e 's/\(bucket @b1 .*sp\] \)zero/\1distinct over [tp] zero/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step | FileCheck %s --check-prefix=SHARDS
// RUN: sed -e 's/ZERO/0/g' -e 's/tp = 1\]/tp = 2]/' -e 's/\(bucket @b1 .*sp\] \)zero/\1distinct over [tp] zero/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step | FileCheck %s --check-prefix=TENSOR

// Updates by norms of whole parameters: all directions, the norms of all ranks, then the updates that go by them.

// SLICED-DAG: exec.buffer @scalars : memref<16xf32> buffers
// SLICED-DAG: exec.buffer @norms.own : memref<80xi64> buffers
// SLICED-DAG: exec.buffer @norms.all : memref<160xi64> buffers
// SLICED: exec.agree
// SLICED: exec.update @update.lamb.direction of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.m, @b0.v] elements 64 sliced direction record @norms.own on @compute
// SLICED: %[[LAST:.*]] = exec.update @update.lamb.direction of @b1 {{.*}} sliced direction record @norms.own+320 on @compute
// SLICED: exec.wait %[[LAST]] on @comm
// SLICED: %[[ALL:.*]] = exec.gather @norms.own to @norms.all bytes 640 all_gather order {{.*}} over @dp on @comm
// SLICED: exec.wait %[[ALL]] on @compute
// SLICED: exec.update @update.lamb of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.m, @b0.v] elements 64 sliced record @norms.all on @compute
// SLICED: exec.update @update.lamb of @b1

// WHOLE-NOT: @norms.all
// WHOLE: exec.update @update.lamb.direction of @b0 {{.*}} elements 128 direction record @norms.own on @compute
// WHOLE: exec.update @update.lamb of @b0 {{.*}} elements 128 record @norms.own on @compute

// Of tensor shards the ranks along tp have others: their records come from all of these.
// SHARDS: exec.gather @norms.own to @norms.all bytes 320 all_gather order {{.*}} over @dp on @comm
// SHARDS: exec.gather @norms.own.shards to @norms.all.shards bytes 320 all_gather order {{.*}} over @edp.ep.sp.tp on @comm
// SHARDS: exec.update @update.lamb of @b0 {{.*}} record @norms.all on
// SHARDS: exec.update @update.lamb of @b1 {{.*}} record @norms.all.shards on
// SHARDS: exec.communicator @edp.ep.sp.tp over [edp, ep, sp, tp]

// TENSOR-NOT: @norms.all to
// TENSOR: exec.gather @norms.own.shards to @norms.all.shards bytes 320 all_gather order {{.*}} over @tp on @tensor
// TENSOR: exec.update @update.lamb of @b0 {{.*}} record @norms.own on
// TENSOR: exec.update @update.lamb of @b1 {{.*}} record @norms.all.shards on

// A device's tables: of the one group, of each parameter, and room for a record of 40 words.
// DEVICE: exec.buffer @scalars : memref<128xf32> buffers

// NONE: error:
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = ZERO : i64, micro_batches = 2 : i64, schedule = "gpipe"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  graph.parameter @w1 : tensor<10x10xf32> from "m" at 400 bytes 400
  graph.state @w0.grad.0 : tensor<10x10xf32> gradient of @w0 block 0
  graph.state @w1.grad.0 : tensor<10x10xf32> gradient of @w1 block 1
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.0}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w0.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.lamb.direction(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 1, 2, 3>} {
    return %g, %m, %v : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.lamb(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0>} {
    return %p : tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4x10xf32> {graph.name = "x"}, %y: tensor<4x10xf32> {graph.name = "y", graph.label, graph.ignore_index = -1 : i64}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h = graph.run @block0.F(%x) : (tensor<4x10xf32>) -> tensor<4x10xf32>
    %loss = graph.run @block1.F(%h) : (tensor<4x10xf32>) -> tensor<f32>
    %dh = graph.run @block1.B(%seed) : (tensor<f32>) -> tensor<4x10xf32>
    graph.run @block1.W(%h, %seed) : (tensor<4x10xf32>, tensor<f32>) -> ()
    dist.reduce @b1 use 0 of [@w1.grad.0] over [edp, ep, sp] as f32
    graph.run @block0.W(%x, %dh) : (tensor<4x10xf32>, tensor<4x10xf32>) -> ()
    dist.reduce @b0 use 0 of [@w0.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w0 : tensor<10x10xf32>
    %0:3 = graph.lamb %p, %p, %p, %p, %s {functions = #graph.functions<kernel = @update.lamb, direction = @update.lamb.direction>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>)
    %q = graph.read @w1 : tensor<10x10xf32>
    %1:3 = graph.lamb %q, %q, %q, %q, %s {functions = #graph.functions<kernel = @update.lamb, direction = @update.lamb.direction>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    graph.write @w1, %1#0 : tensor<10x10xf32>
    return
  }
}
