// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients | FileCheck %s
// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/, join = @update.join//' %s | not dsopt-opt -freeze-updates -finish-step 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: sed 's/exec.program @position0 position/exec.program @position0 late position/' %s | not dsopt-opt 2>&1 | FileCheck %s --check-prefix=PHASE

// Two ranks, a bucket of two units of 64 elements. Of 0/1 Adam there are a whole step, and programs of the three other kinds.
module attributes {dsopt.options = {dp = 2 : i64, freeze_step = 4 : i64, local_step_clipper = 8 : i64, local_step_scaler = 2 : i64, var_update_scaler = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero 0 master f32 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>, #dist.state<"u" : f32>]
  func.func private @block0.W(memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.whole(%p: tensor<64xf32>, %g: tensor<64xf32>, %a: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %u: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0, 2, 3, 4, 5>} {
    return %a, %a, %m, %v, %u : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.compressed(%p: tensor<64xf32>, %g: tensor<64xf32>, %a: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %u: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0, 2>} {
    return %a, %a : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.local(%p: tensor<64xf32>, %g: tensor<64xf32>, %a: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %u: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0, 2, 3, 5>} {
    return %a, %a, %m, %u : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.own(%p: tensor<64xf32>, %g: tensor<64xf32>, %a: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %u: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 3, 5>} {
    return %m, %u : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.join(%p: tensor<64xf32>, %g: tensor<64xf32>, %a: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %u: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0, 2, 3, 5>} {
    return %a, %a, %m, %u : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
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
    %0:4 = graph.zero_one_adam %p, %p, %p, %p, %p, %s {functions = #graph.functions<kernel = @update.whole, frozen = @update.compressed, local = @update.local, local_direction = @update.own, join = @update.join>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    return
  }
}
// CHECK-LABEL: exec.program @position0 position
// CHECK: exec.buffer @b0.worker_error : memref<128xf32> optimizer
// CHECK: exec.reduce
// CHECK-NOT: exec.map
// CHECK: exec.update @update.whole

// CHECK-LABEL: exec.program @position0.compressed compressed position
// CHECK: exec.schedule
// CHECK-NOT: exec.reduce
// CHECK: exec.norm @b0.grad.0 of @b0 whole
// CHECK: exec.map @onebit.takes [@b0.v, @b0.signs.takes] elements {{[0-9]+}} grain 64
// CHECK-NEXT: exec.map @zero_one.compensate.f32 [@b0.grad.0, @b0.worker_error, @b0.signs.takes, @scalars+4, @scalars+8, @b0.signs.squares, @b0.signs.counts] elements 2
// CHECK: exec.all_to_all
// CHECK: exec.map @zero_one.momentum [@b0.signs.mean+4, @b0.signs.mean, @b0.signs.takes, @b0.m, @scalars+8, @scalars+16, @scalars+20] elements 2
// CHECK: exec.update @update.compressed of @b0 [@b0.param, @b0.grad.0, @b0.master, @b0.m, @b0.v, @b0.u] elements 128 on @compute

// CHECK-LABEL: exec.program @position0.local local position
// CHECK: exec.agree
// CHECK-NEXT: exec.update @update.local of @b0
// CHECK-NOT: exec.all_to_all

// CHECK-LABEL: exec.program @position0.join join position
// CHECK: exec.agree
// CHECK-NEXT: exec.update @update.own of @b0 [@b0.param, @b0.grad.0, @b0.master, @b0.m, @b0.v, @b0.u] elements 128 direction on @compute
// CHECK-NEXT: exec.map @onebit.takes [@b0.v, @b0.signs.takes] elements {{[0-9]+}} grain 64
// CHECK-NEXT: exec.map @zero_one.weigh [@b0.u, @b0.worker_error, @b0.signs.takes, @b0.v, @scalars+40, @scalars+32, @scalars+8, @b0.signs.squares, @b0.signs.counts] elements 2
// CHECK: exec.all_to_all
// CHECK: exec.map @onebit.unpack [@b0.signs.mean+4, @b0.signs.mean, @b0.signs.takes, @b0.u, @scalars+8] elements 2
// CHECK: exec.update @update.join of @b0

// What is kept lies at one place in all; what travels is counted.
// PLAN: exec.buffer @b0.worker_error at [[WORKER:[0-9]+]]
// PLAN: exec.program @position0.compressed {{.*}}traffic = {all_gather = 12 : i64, all_to_all = 12 : i64,
// PLAN: exec.buffer @b0.worker_error at [[WORKER]]
// PLAN: exec.program @position0.local
// PLAN: exec.buffer @b0.worker_error at [[WORKER]]
// PLAN: exec.program @position0.join {{.*}}traffic = {all_gather = 12 : i64, all_to_all = 12 : i64,
// PLAN: exec.buffer @b0.worker_error at [[WORKER]]

// KERNEL: 'dist.bucket' op holds @w0, which no operation of @update with a kernel reads
// PHASE: error: custom op 'exec.program' expected 'position'
