// RUN: sed 's/ZERO/1/g' %s | dsopt-opt -delay-updates -finish-step | FileCheck %s --check-prefixes=CHECK,SLICED
// RUN: sed 's/ZERO/0/g' %s | dsopt-opt -delay-updates -finish-step | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: sed 's/ZERO/1/g;s/delayed_update/clip = 1 : i64, &/' %s | dsopt-opt -delay-updates -finish-step | FileCheck %s --check-prefixes=CHECK,SLICED
// RUN: sed 's/ZERO/1/g' %s | dsopt-opt -delay-updates -finish-step -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN

// Where updates lag, the pending gradient is used before the agreement, clipped or not; the new one takes its place.
module attributes {dsopt.options = {dp = 2 : i64, delayed_update = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>]
  func.func private @block0.W(memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
      %1 = exec.reduce @b0.grad.0 to @b0.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
      %2 = exec.agree norms [] losses [@loss] order 1 over @world on @comm
    }
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w0 : tensor<10x10xf32>
    %0:2 = graph.momentum %p, %p, %p, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    return
  }
}
// CHECK-LABEL: exec.program @position0 position
// SLICED: exec.buffer @b0.pending : memref<64xf32> gradients slots 1 stride 256 persistent pending of @b0
// WHOLE: exec.buffer @b0.pending : memref<128xf32> gradients slots 1 stride 512 persistent pending of @b0
// CHECK: exec.schedule
// CHECK-NOT: @b0.pending
// CHECK-LABEL: exec.program @position0.delayed
// SLICED: exec.buffer @b0.pending : memref<64xf32> gradients slots 1 stride 256 persistent pending of @b0
// CHECK: exec.reduce
// WHOLE: exec.gather @b0.grad.0
// CHECK: exec.norm @b0.grad.0+256*edp of @b0
// SLICED-NEXT: exec.update @update.momentum of @b0 [@b0.param+256*edp, @b0.pending, @b0.m] elements 64 sliced on @compute
// SLICED-NEXT: exec.copy @b0.grad.0+256*edp to @b0.pending bytes 256 on @download
// SLICED-NEXT: exec.gather @b0.param
// WHOLE-NEXT: exec.update @update.momentum of @b0 [@b0.param, @b0.pending, @b0.m] elements 128 on @compute
// WHOLE-NEXT: exec.copy @b0.grad.0 to @b0.pending bytes 512 on @download
// CHECK: exec.agree

// PLAN-COUNT-2: exec.buffer @b0.pending at 576 :
