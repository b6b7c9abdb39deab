// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients | FileCheck %s
// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/zero 0/zero 1/' %s | not dsopt-opt -freeze-updates -finish-step 2>&1 | FileCheck %s --check-prefix=SLICED
// RUN: sed 's/, frozen = @update.frozen//' %s | not dsopt-opt -freeze-updates -finish-step 2>&1 | FileCheck %s --check-prefix=KERNEL

// Two ranks, a bucket of two units of 64 elements. Behind the freeze norms are of the ranks' own gradients, updates follow the agreement,
// and in front of each stands the exchange of the momentum: worker, all to all, server, gather, all.
module attributes {dsopt.options = {dp = 2 : i64, freeze_step = 4 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero 0 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
  func.func private @block0.W(memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.warm(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m, %v : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func private @update.frozen(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0>} {
    return %p : tensor<64xf32>
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
    %0:3 = graph.onebit_adam %p, %p, %p, %p, %s {functions = #graph.functions<kernel = @update.warm, frozen = @update.frozen>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    return
  }
}
// CHECK-LABEL: exec.program @position0 position
// CHECK: exec.buffer @b0.worker_error : memref<128xf32> optimizer slots 1 stride 512 persistent state "worker_error" of @b0
// CHECK: exec.buffer @b0.server_error : memref<64xf32> optimizer slots 1 stride 256 persistent state "server_error" of @b0
// CHECK: exec.reduce
// CHECK: exec.gather @b0.grad.0+256*edp to @b0.grad.0
// CHECK-NOT: exec.map
// CHECK-LABEL: exec.program @position0.frozen frozen position
// CHECK: exec.buffer @b0.worker_error : memref<128xf32> optimizer slots 1 stride 512 persistent state "worker_error" of @b0
// CHECK: exec.schedule
// CHECK-NOT: exec.reduce
// CHECK: exec.norm @b0.grad.0 of @b0 whole to @norms on @compute
// CHECK-NEXT: exec.agree norms [@norms] losses [@loss] order 0
// CHECK-NEXT: exec.map @onebit.takes [@b0.v, @b0.signs.takes] elements {{[0-9]+}} grain 64
// CHECK-NEXT: exec.map @onebit.compensate.f32 [@b0.m, @b0.grad.0, @b0.worker_error, @b0.signs.takes, @scalars+4, @scalars+8, @scalars+16, @scalars+20, @b0.signs.squares, @b0.signs.counts] elements 2 grain 64
// CHECK-NEXT: exec.map @onebit.scale.1 [@b0.signs.squares, @b0.signs.counts, @b0.signs.sent] elements 1 grain 64
// CHECK-NEXT: exec.map @onebit.pack [@b0.worker_error, @b0.signs.takes, @b0.signs.sent, @scalars+8, @b0.signs.sent+4] elements 2 grain 64
// CHECK-NEXT: exec.map @onebit.scale.1 [@b0.signs.squares+8, @b0.signs.counts+4, @b0.signs.sent+12] elements 1 grain 64
// CHECK-NEXT: exec.map @onebit.pack [@b0.worker_error+256, @b0.signs.takes+8, @b0.signs.sent+12, @scalars+8, @b0.signs.sent+16] elements 2 grain 64
// CHECK-NEXT: exec.all_to_all @b0.signs.sent to @b0.signs.received bytes 12 for 256 order 1 over @dp on @comm
// CHECK-NEXT: exec.map @onebit.average.2 [@b0.signs.received+4, @b0.signs.received, @b0.signs.received+16, @b0.signs.received+12, @b0.server_error, @b0.signs.takes+8*edp, @scalars+8, @b0.signs.own.squares, @b0.signs.own.counts] elements 1 grain 64
// CHECK-NEXT: exec.map @onebit.scale.1 [@b0.signs.own.squares, @b0.signs.own.counts, @b0.signs.mean+12*edp] elements 1 grain 64
// CHECK-NEXT: exec.map @onebit.pack [@b0.server_error, @b0.signs.takes+8*edp, @b0.signs.mean+12*edp, @scalars+8, @b0.signs.mean+4+12*edp] elements 2 grain 64
// CHECK-NEXT: exec.gather @b0.signs.mean+12*edp to @b0.signs.mean bytes 12 for 256 all_gather order 2 over @dp on @comm
// CHECK-NEXT: exec.map @onebit.unpack [@b0.signs.mean+4, @b0.signs.mean, @b0.signs.takes, @b0.m, @scalars+8] elements 2 grain 64
// CHECK-NEXT: exec.map @onebit.unpack [@b0.signs.mean+16, @b0.signs.mean+12, @b0.signs.takes+8, @b0.m+256, @scalars+8] elements 2 grain 64
// CHECK-NEXT: exec.update @update.frozen of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 128 on @compute
// CHECK: func.func private @onebit.compensate.f32({{.*}}) -> (tensor<64x2x32xf32>, tensor<64xf64>, tensor<64xf32>) attributes {graph.in_place = array<i64: 2, 8, 9>, graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 64>}

// What is kept lies at one place in both; what travels is counted.
// PLAN: exec.buffer @b0.worker_error at [[WORKER:[0-9]+]]
// PLAN: exec.buffer @b0.server_error at [[SERVER:[0-9]+]]
// PLAN: exec.program @position0.frozen {{.*}}traffic = {all_gather = 12 : i64, all_to_all = 12 : i64,
// PLAN: exec.buffer @b0.worker_error at [[WORKER]]
// PLAN: exec.buffer @b0.server_error at [[SERVER]]

// SLICED: 'dist.bucket' op is cut by stage 1, expected 0: where the variance freezes, every rank has all of it
// KERNEL: 'dist.bucket' op holds @w0, which no operation of @update with a kernel reads
