// RUN: sed -e 's/ZERO/1/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=SLICED
// RUN: sed -e 's/ZERO/0/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=WHOLE
// RUN: sed -e 's/ZERO/2/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -describe-changes -verify-exec -o %t
// RUN: FileCheck %s --check-prefix=CHANGES < %t
// RUN: sed '/exec.transform .*+512/d' %t | not dsopt-opt -verify-exec -o /dev/null 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: sed -e 's/ZERO/1/g' -e 's/module attributes {/module attributes {dsopt.target = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 1, vector_bits = 128, features = []>, /' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step | FileCheck %s --check-prefix=DEVICE

// Updates that see whole parameters and their norms: all directions with records, the norms of all ranks, then what is
// made of each parameter and what is kept of it, which every rank has room for.

// SLICED-DAG: exec.buffer @scalars : memref<16xf32> buffers
// SLICED-DAG: exec.buffer @b0.row_var : memref<128xf32> optimizer{{.*}}persistent
// SLICED-DAG: exec.buffer @b0.col_var : memref<128xf32> optimizer
// SLICED-DAG: exec.buffer @b1.row_var : memref<64xf32> optimizer
// SLICED-DAG: exec.buffer @norms.own : memref<120xi64> buffers
// SLICED-DAG: exec.buffer @norms.all : memref<240xi64> buffers
// SLICED: exec.agree
// SLICED: exec.update @update.adafactor.direction of @b0 [@b0.param+512*edp, @b0.grad.0+512*edp] elements 128 sliced direction record @norms.own on @compute
// SLICED: exec.update @update.adafactor.direction of @b1 {{.*}} sliced direction record @norms.own+640 on @compute
// SLICED: exec.gather @norms.own to @norms.all bytes 960 all_gather
// SLICED: %[[ALL:.*]] = exec.gather @b0.grad.0+512*edp to @b0.grad.0 bytes 512 all_gather order {{.*}} over @dp on @comm
// SLICED: exec.wait %[[ALL]] on @compute
// SLICED: exec.transform @adafactor.10x10 of @b0 [@b0.grad.0, @scalars, @b0.row_var, @b0.col_var, @b0.matrices] elements 100 sliced temp @temp.448 on @compute
// SLICED: exec.transform @adafactor.10x10 of @b0 [@b0.grad.0+512, @scalars, @b0.row_var+256, @b0.col_var+256, @b0.matrices+512] elements 100 from 128 sliced temp @temp.448 on @compute
// SLICED: exec.update @update.adafactor of @b0 [@b0.param+512*edp, @b0.matrices+512*edp] elements 128 sliced unpadded record @norms.all on @compute
// SLICED: exec.transform @adafactor.10x10 of @b1
// SLICED: exec.update @update.adafactor of @b1

// WHOLE-NOT: @norms.all
// WHOLE-DAG: exec.buffer @b0.row_var : memref<128xf32> optimizer
// WHOLE: exec.update @update.adafactor.direction of @b0 [@b0.param, @b0.grad.0] elements 256 direction record @norms.own on @compute
// WHOLE-NOT: exec.gather
// WHOLE: exec.transform @adafactor.10x10 of @b0 [@b0.grad.0, @scalars, @b0.row_var, @b0.col_var, @b0.matrices] elements 100 temp
// WHOLE: exec.update @update.adafactor of @b0 [@b0.param, @b0.matrices] elements 256 unpadded record @norms.own on @compute

// What a checkpoint waits for.
// CHANGES: exec.transform @adafactor.10x10 of @b0 {{.*}}exec.changes = [@b0.row_var, @b0.col_var]

// A device's tables: of the one group, of each of three parameters, and room for a record of 40 words.
// DEVICE: exec.buffer @scalars : memref<144xf32> buffers

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
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>, #dist.range<@v0, 128, 100>] elements 256 padded 256 over [edp, ep, sp] zero ZERO
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO
  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @v0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.0}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w0.grad.0}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @v0.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @adafactor.10x10(memref<10x10xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<read>}, memref<10x1xf32> {exec.access = #exec.access<update>, graph.whole_state = "row_var"}, memref<1x10xf32> {exec.access = #exec.access<update>, graph.whole_state = "col_var"}, memref<10x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 448 : i64, graph.matrix_update}
  func.func private @update.adafactor.direction(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 1>} {
    return %g : tensor<64xf32>
  }
  func.func private @update.adafactor(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0>} {
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
    %0 = graph.adafactor %p, %p, %s {functions = #graph.functions<kernel = @update.adafactor, direction = @update.adafactor.direction, matrix = @adafactor.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> tensor<10x10xf32>
    %o = graph.read @v0 : tensor<10x10xf32>
    %1 = graph.adafactor %o, %o, %s {functions = #graph.functions<kernel = @update.adafactor, direction = @update.adafactor.direction, matrix = @adafactor.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> tensor<10x10xf32>
    %q = graph.read @w1 : tensor<10x10xf32>
    %2 = graph.adafactor %q, %q, %s {functions = #graph.functions<kernel = @update.adafactor, direction = @update.adafactor.direction, matrix = @adafactor.10x10>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> tensor<10x10xf32>
    graph.write @w0, %0 : tensor<10x10xf32>
    graph.write @v0, %1 : tensor<10x10xf32>
    graph.write @w1, %2 : tensor<10x10xf32>
    return
  }
}
