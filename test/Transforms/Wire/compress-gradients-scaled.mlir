// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients | FileCheck %s
// RUN: dsopt-opt %s -freeze-updates -finish-step -compress-gradients -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN

// 1-bit LAMB on two ranks: a bucket of two parameters in two units of 128 elements, of which the second parameter has a part of both. Each parameter's
// momentum travels as a multiple of its own coefficient, and of what comes back the fresh variance goes on. Then directions, then steps.
module attributes {dsopt.options = {dp = 2 : i64, freeze_step = 4 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<3x20xf32> from "m" at 0 bytes 240
  graph.parameter @w1 : tensor<10x13xf32> from "m" at 240 bytes 520
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 60>, #dist.range<@w1, 64, 130>] elements 256 padded 256 over [edp, ep, sp] zero 0 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>, #dist.state<"v_fresh" : f32>]
  func.func private @block0.W(memref<256xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @lamb(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %f: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 0>} {
    return %p : tensor<64xf32>
  }
  func.func private @lamb.direction(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %f: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 1, 2, 3, 4>} {
    return %g, %m, %v, %f : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func private @lamb.frozen(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %f: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.in_place = array<i64: 1>} {
    return %g : tensor<64xf32>
  }
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<256xf32> parameters slots 1 stride 1024 persistent stored of @b0
    exec.buffer @b0.grad.0 : memref<256xf32> gradients slots 1 stride 1024 accumulator of @b0 use 0
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
      %1 = exec.reduce @b0.grad.0 to @b0.grad.0+512*edp elements 128 : f32 order 0 over @dp on @comm
      %2 = exec.agree norms [] losses [@loss] order 1 over @world on @comm
    }
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w0 : tensor<3x20xf32>
    %q = graph.read @w1 : tensor<10x13xf32>
    %0:4 = graph.onebit_lamb %p, %p, %p, %p, %p, %s {functions = #graph.functions<kernel = @lamb, direction = @lamb.direction, frozen = @lamb.frozen>} : (tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<16xf32>) -> (tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>)
    %1:4 = graph.onebit_lamb %q, %q, %q, %q, %q, %s {functions = #graph.functions<kernel = @lamb, direction = @lamb.direction, frozen = @lamb.frozen>} : (tensor<10x13xf32>, tensor<10x13xf32>, tensor<10x13xf32>, tensor<10x13xf32>, tensor<10x13xf32>, tensor<16xf32>) -> (tensor<10x13xf32>, tensor<10x13xf32>, tensor<10x13xf32>, tensor<10x13xf32>)
    graph.write @w0, %0#0 : tensor<3x20xf32>
    graph.write @w1, %1#0 : tensor<10x13xf32>
    return
  }
}
// CHECK-LABEL: exec.program @position0 position
// CHECK: exec.buffer @b0.worker_error : memref<256xf32>
// CHECK: exec.buffer @b0.server_error : memref<128xf32>
// CHECK: exec.buffer @b0.coefficients : memref<6xf32> optimizer slots 1 stride 64 persistent kept "coefficients" of @b0
// CHECK-NOT: exec.map
// CHECK: exec.update @lamb.direction of @b0 {{.*}} direction record @norms.own
// CHECK-NEXT: exec.update @lamb of @b0 {{.*}} elements 256 record @norms.own coefficients @b0.coefficients on
// CHECK-LABEL: exec.program @position0.frozen frozen position
// CHECK: exec.buffer @b0.coefficients : memref<6xf32> optimizer slots 1 stride 64 persistent kept "coefficients" of @b0
// CHECK: exec.schedule
// CHECK-NOT: exec.reduce
// CHECK: exec.agree
// CHECK-NEXT: exec.map @onebit.takes [@b0.v, @b0.signs.takes] elements {{[0-9]+}} grain 64
// CHECK-NEXT: exec.map @onebit.compensate.scaled.f32 [@b0.m, @b0.grad.0, @b0.worker_error, @b0.signs.takes, @scalars+4, @scalars+8, @scalars+16, @scalars+20, @b0.coefficients+8, @b0.signs.squares, @b0.signs.counts] elements 1 grain 64
// CHECK-NEXT: exec.map @onebit.compensate.scaled.f32 [@b0.m+256, @b0.grad.0+256, @b0.worker_error+256, @b0.signs.takes+8, @scalars+4, @scalars+8, @scalars+16, @scalars+20, @b0.coefficients+20, @b0.signs.squares+8, @b0.signs.counts+4] elements 3 grain 64
// CHECK-NEXT: exec.map @onebit.scale.2
// CHECK: exec.all_to_all @b0.signs.sent to @b0.signs.received bytes 20 for 512
// CHECK: exec.gather @b0.signs.mean+20*edp to @b0.signs.mean bytes 20 for 512
// CHECK-NEXT: exec.map @onebit.unpack.scaled [@b0.signs.mean+4, @b0.signs.mean, @b0.signs.takes, @b0.m, @b0.v_fresh, @b0.coefficients+8, @scalars+8, @scalars+16, @scalars+20, @scalars+24, @scalars+28] elements 2 grain 64
// CHECK-NEXT: exec.map @onebit.unpack.scaled [@b0.signs.mean+12, @b0.signs.mean, @b0.signs.takes+8, @b0.m+256, @b0.v_fresh+256, @b0.coefficients+20, {{.*}}] elements 2 grain 64
// CHECK-NEXT: exec.map @onebit.unpack.scaled [@b0.signs.mean+24, @b0.signs.mean+20, @b0.signs.takes+16, @b0.m+512, @b0.v_fresh+512, @b0.coefficients+20, {{.*}}] elements 4 grain 64
// CHECK-NEXT: exec.update @lamb.frozen of @b0 {{.*}} direction record @norms.own
// CHECK-NEXT: exec.update @lamb of @b0 {{.*}} elements 256 record @norms.own coefficients @b0.coefficients on
// CHECK: func.func private @onebit.compensate.scaled.f32({{.*}}) -> (tensor<64x2x32xf32>, tensor<64xf64>, tensor<64xf32>) attributes {graph.in_place = array<i64: 2, 9, 10>
// CHECK: func.func private @onebit.unpack.scaled({{.*}}) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {graph.in_place = array<i64: 3, 4>

// What is kept lies at one place in both.
// PLAN: exec.buffer @b0.coefficients at [[PLACE:[0-9]+]]
// PLAN: exec.program @position0.frozen
// PLAN: exec.buffer @b0.coefficients at [[PLACE]]
