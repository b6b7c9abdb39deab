// RUN: dsopt-opt %s -offload-updates | FileCheck %s
// RUN: dsopt-opt %s -offload-updates -insert-waits | FileCheck %s --check-prefix=WAITS
// RUN: dsopt-opt %s -offload-updates -insert-waits -plan-memory -verify-exec -o /dev/null
// RUN: sed 's/kept in host/kept in disk/' %s | dsopt-opt -offload-updates | FileCheck %s --check-prefix=DISK
// RUN: sed 's/kept in host/kept in disk/' %s | dsopt-opt -offload-updates -insert-waits -plan-memory -verify-exec -o /dev/null

// An update that lags begins with the step; what it makes of the parameters takes their place behind the last run that reads them.
module attributes {dsopt.options = {dp = 2 : i64, delayed_update = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @download copy
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<128xf32> from "m" at 0 bytes 512
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>] kept in host
  func.func private @momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @block0.F(%x: memref<128xf32> {exec.access = #exec.access<read>}, %loss: memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    return
  }
  func.func private @block0.W(%g: memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    return
  }
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @b0.pending : memref<64xf32> gradients slots 1 stride 256 persistent pending of @b0
    exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %f = exec.run @block0.F [@b0.param, @loss] micro_batch 0 on @compute
      %w = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
      %r = exec.reduce @b0.grad.0 to @b0.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
      %n = exec.norm @b0.grad.0+256*edp of @b0 to @norms on @compute
      %u = exec.update @momentum of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.m] elements 64 sliced on @compute
      %g = exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather order 1 over @dp on @comm
      %a = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
  exec.program @position0.delayed delayed position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @b0.pending : memref<64xf32> gradients slots 1 stride 256 persistent pending of @b0
    exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %f = exec.run @block0.F [@b0.param, @loss] micro_batch 0 on @compute
      %w = exec.run @block0.W [@b0.grad.0] micro_batch 0 on @compute
      %r = exec.reduce @b0.grad.0 to @b0.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
      %n = exec.norm @b0.grad.0+256*edp of @b0 to @norms on @compute
      %u = exec.update @momentum of @b0 [@b0.param+256*edp, @b0.pending, @b0.m] elements 64 sliced on @compute
      %k = exec.copy @b0.grad.0+256*edp to @b0.pending bytes 256 on @download
      %g = exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather order 1 over @dp on @comm
      %a = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}
// CHECK-LABEL: exec.program @position0 position
// CHECK: exec.buffer @b0.pending in @host : memref<64xf32> gradients
// CHECK: exec.update @momentum of @b0 [@host.param.f32, @host.grad.f32, @b0.m]
// CHECK-LABEL: exec.program @position0.delayed
// CHECK: exec.buffer @b0.pending in @host : memref<64xf32> gradients
// CHECK: exec.buffer @b0.next in @host : memref<64xf32> buffers slots 1 stride 256 of @b0
// CHECK: exec.schedule
// CHECK-NEXT: exec.copy @b0.param+256*edp to @b0.next bytes 256 on @download
// CHECK-NEXT: exec.update @momentum of @b0 [@b0.next, @b0.pending, @b0.m] elements 64 sliced on @host
// CHECK-NEXT: exec.run @block0.F
// CHECK-NEXT: exec.run @block0.W
// CHECK-NEXT: exec.reduce
// CHECK-NEXT: exec.norm
// CHECK-NEXT: exec.copy @b0.next to @b0.param+256*edp bytes 256 on @upload
// CHECK-NEXT: exec.copy @b0.grad.0+256*edp to @b0.pending bytes 256 on @download
// CHECK-NEXT: exec.gather

// Runs wait for nothing; the new parameters wait for what reads the old ones, the new gradient for the update with the old one.
// WAITS-LABEL: exec.program @position0.delayed
// WAITS: exec.schedule
// WAITS-NEXT: %[[NEXT:.*]] = exec.copy @b0.param+256*edp to @b0.next
// WAITS-NEXT: exec.wait %[[NEXT]] on @host
// WAITS-NEXT: %[[UPDATE:.*]] = exec.update @momentum
// WAITS-NEXT: %[[READS:.*]] = exec.run @block0.F
// WAITS-NEXT: exec.run @block0.W
// WAITS-DAG: exec.wait %[[READS]] on @upload
// WAITS-DAG: exec.wait %[[UPDATE]] on @upload
// WAITS: exec.copy @b0.next to @b0.param+256*edp
// WAITS: exec.wait %[[UPDATE]] on @download
// WAITS: exec.copy @b0.grad.0+256*edp to @b0.pending

// On disk the gradient lies with the state: it is brought with it, and that of this step is set aside through the host.
// DISK-LABEL: exec.program @position0 position
// DISK: exec.buffer @b0.pending in @disk
// DISK-NOT: host.pending
// DISK-LABEL: exec.program @position0.delayed
// DISK: exec.buffer @b0.pending in @disk
// DISK: exec.buffer @b0.m in @disk
// DISK: exec.buffer @host.pending.f32 in @host : memref<2048xf32> buffers slots 2
// DISK: exec.schedule
// DISK-NEXT: exec.copy @b0.pending to @host.grad.f32 bytes 256 on @disk
// DISK-NEXT: exec.copy @b0.m to @host.m.f32 bytes 256 on @disk
// DISK-NEXT: exec.copy @b0.param+256*edp to @b0.next bytes 256 on @download
// DISK-NEXT: exec.update @momentum of @b0 [@b0.next, @host.grad.f32, @host.m.f32] elements 64 sliced on @host
// DISK-NEXT: exec.copy @host.m.f32 to @b0.m bytes 256 on @disk
// DISK-NEXT: exec.run @block0.F
// DISK: exec.copy @b0.next to @b0.param+256*edp bytes 256 on @upload
// DISK-NEXT: exec.copy @b0.grad.0+256*edp to @host.pending.f32 bytes 256 on @download
// DISK-NEXT: exec.copy @host.pending.f32 to @b0.pending bytes 256 on @disk
// DISK-NEXT: exec.gather
