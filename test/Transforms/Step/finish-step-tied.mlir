// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefixes=CHECK,STAGE1
// RUN: sed -e 's/ZERO/3/g;/^!WHOLE/d;s/^!SLICED//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefixes=CHECK,STAGE3
// RUN: sed -e 's/ZERO states/1 gradient bf16 states/g;s/pp = 3 : i64,/pp = 3 : i64, gradient_type = "param",/;s/as f32/as bf16/;/^!SLICED/d;s/^!WHOLE//' -e 's/ZERO/1/g' -e 's/128xf32> {exec.access = #exec.access<update>/128xbf16> {exec.access = #exec.access<update>/g' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=BF16

// Blocks 0 and 2 share @t; block 2 also reads what block 0 computes, two stages
// below, so that it hops through stage 1, and its gradient hops back.

// Accumulators, their reductions, additions and messages have the gradients' type; the optimizer's state has not.
// BF16-LABEL: exec.program @position0
// BF16-DAG: exec.buffer @tied.t.param {{.*}} memref<128xf32>
// BF16-DAG: exec.buffer @tied.t.grad.0 {{.*}} memref<128xbf16>
// BF16-DAG: exec.buffer @tied.t.tied.1 {{.*}} memref<64xbf16> tied
// BF16-DAG: exec.buffer @tied.t.m {{.*}} memref<64xf32>
// BF16: exec.reduce @tied.t.grad.0 to @tied.t.grad.0+128*edp elements 64 : bf16
// BF16: exec.recv @tied.t.tied.1 bytes 128 from 2 tag "tied.t.grad.1" tied over @pp on @recv
// BF16: exec.add @tied.t.grad.0+128*edp, @tied.t.tied.1 elements 64 : bf16 on @compute
// BF16: exec.norm @tied.t.grad.0+128*edp
// BF16: exec.update @update.momentum of @tied.t [@tied.t.param+256*edp, @tied.t.grad.0+128*edp, @tied.t.m] elements 64 sliced
module attributes {dsopt.options = {dp = 2 : i64, pp = 3 : i64, zero = ZERO : i64, micro_batches = 1 : i64, schedule = "1f1b"}} {
  dist.grid @grid [pp = 3, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @t : tensor<128xf32> from "m" at 0 bytes 512
  graph.state @t.grad.0 : tensor<128xf32> gradient of @t block 0
  graph.state @t.grad.1 : tensor<128xf32> gradient of @t block 2
  dist.bucket @tied.t : f32 of [0, 2] [#dist.range<@t, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>]
!WHOLE  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>, exec.parameter = @t}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
!SLICED  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
!WHOLE  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>, exec.parameter = @t}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
!SLICED  func.func private @block2.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.B(memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}, memref<4xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @t.grad.1}) attributes {exec.segment, dist.stage = 2 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block0.W(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @t.grad.0}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
!WHOLE    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
!SLICED    %t0 = dist.gather @tied.t [@t] over [edp, ep, sp] : tensor<128xf32>
!SLICED    %h0 = graph.run @block0.F(%x, %t0) : (tensor<4xf32>, tensor<128xf32>) -> tensor<4xf32>
!SLICED    dist.release %t0 : tensor<128xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<4xf32>
!WHOLE    %loss = graph.run @block2.F(%h0, %h1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
!SLICED    %t2 = dist.gather @tied.t [@t] over [edp, ep, sp] : tensor<128xf32>
!SLICED    %loss = graph.run @block2.F(%h0, %h1, %t2) : (tensor<4xf32>, tensor<4xf32>, tensor<128xf32>) -> tensor<f32>
!SLICED    dist.release %t2 : tensor<128xf32>
    %g0, %g1 = graph.run @block2.B(%seed) : (tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.reduce @tied.t use 1 of [@t.grad.1] over [edp, ep, sp] as f32
    %g2 = graph.run @block1.B(%g1) : (tensor<4xf32>) -> tensor<4xf32>
    graph.run @block0.W(%g0, %g2) : (tensor<4xf32>, tensor<4xf32>) -> ()
    dist.reduce @tied.t use 0 of [@t.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @t : tensor<128xf32>
    %0:2 = graph.momentum %p, %p, %p, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<16xf32>) -> (tensor<128xf32>, tensor<128xf32>)
    graph.write @t, %0#0 : tensor<128xf32>
    return
  }
}

// CHECK-LABEL: exec.program @position0
// CHECK-DAG: exec.buffer @tied.t.param {{.*}} parameters
// CHECK-DAG: exec.buffer @tied.t.tied.1 {{.*}} memref<64xf32> tied
// CHECK-DAG: exec.buffer @tied.t.m
// CHECK: exec.schedule
// STAGE3: exec.gather @tied.t.param to @tied.t.full bytes 256 all_gather
// CHECK: exec.send @block0.F.0 bytes 16 to 1 tag "block0.F.0" micro_batch 0 send_recv over @pp on @send
// CHECK-DAG: exec.recv @block2.B.0 bytes 16 from 1 tag "block2.B.0" micro_batch 0 send_recv over @pp on @recv
// CHECK-DAG: exec.recv @block1.B.0 bytes 16 from 1 tag "block1.B.0" micro_batch 0 send_recv over @pp on @recv
// CHECK: exec.reduce
// CHECK: exec.recv @tied.t.tied.1 bytes 256 from 2 tag "tied.t.grad.1" tied over @pp on @recv
// STAGE1: exec.add @tied.t.grad.0+256*edp, @tied.t.tied.1 elements 64 : f32 on @compute
// STAGE3: exec.add @tied.t.grad.0, @tied.t.tied.1 elements 64 : f32 on @compute
// CHECK: exec.norm @tied.t.grad.0{{.*}} of @tied.t to @norms on @compute
// CHECK: exec.agree norms [@norms]
// CHECK: exec.update
// STAGE1: exec.send @tied.t.param+256*edp bytes 256 to 2 tag "tied.t.param" tied over @pp on @send
// STAGE1: exec.gather @tied.t.param+256*edp to @tied.t.param bytes 256 all_gather
// STAGE3: exec.send @tied.t.param bytes 256 to 2 tag "tied.t.param" tied over @pp on @send

// A value that another stage needs is handed on before it computes its own.
// CHECK-LABEL: exec.program @position1
// CHECK-NOT: @tied.t.param
// CHECK: exec.schedule
// CHECK: exec.recv @block0.F.0 bytes 16 from 0 tag "block0.F.0" micro_batch 0
// CHECK: exec.send @block0.F.0 bytes 16 to 2 tag "block0.F.0" micro_batch 0
// CHECK: exec.run @block1.F
// CHECK: exec.send @block1.F.0 bytes 16 to 2 tag "block1.F.0" micro_batch 0
// CHECK-DAG: exec.recv @block2.B.0 bytes 16 from 2 tag "block2.B.0" micro_batch 0
// CHECK-DAG: exec.send @block2.B.0 bytes 16 to 0 tag "block2.B.0" micro_batch 0
// CHECK: exec.agree norms [] losses []

// CHECK-LABEL: exec.program @position2
// CHECK-DAG: exec.buffer @tied.t.param {{.*}} tied
// CHECK-DAG: exec.buffer @tied.t.grad.1 {{.*}} tied
// CHECK-NOT: @tied.t.m
// CHECK: exec.schedule
// CHECK: exec.reduce
// STAGE1: exec.send @tied.t.grad.1+256*edp bytes 256 to 0 tag "tied.t.grad.1" tied over @pp on @send
// STAGE3: exec.send @tied.t.grad.1 bytes 256 to 0 tag "tied.t.grad.1" tied over @pp on @send
// CHECK: exec.agree norms []
// CHECK-NOT: exec.update
// CHECK: exec.recv @tied.t.param{{.*}} bytes 256 from 0 tag "tied.t.param" tied over @pp on @recv
// STAGE1: exec.gather @tied.t.param+256*edp to @tied.t.param bytes 256 tied
// STAGE3-NOT: exec.gather
