// RUN: dsopt-opt %s -offload-updates | FileCheck %s
// RUN: dsopt-opt %s -offload-updates -insert-waits | FileCheck %s --check-prefix=WAITS
// RUN: dsopt-opt %s -offload-updates -insert-waits -plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/ kept in host//' %s | dsopt-opt > %t.device
// RUN: sed 's/ kept in host//' %s | dsopt-opt -offload-updates | diff %t.device -
// RUN: sed 's/kept in host/kept in disk/' %s | dsopt-opt -offload-updates | FileCheck %s --check-prefix=DISK
// RUN: sed 's/kept in host/kept in disk/' %s | dsopt-opt -offload-updates -insert-waits -plan-memory | FileCheck %s --check-prefix=DISK-PLAN
// RUN: sed 's/kept in host/kept in disk/;s/128/8192/g;s/<64x/<4096x/g;s/bytes 512/bytes 32768/;s/bytes 256/bytes 16384/g;s/at 512/at 32768/;s/at 768/at 49152/;s/stride 512/stride 32768/;s/stride 256/stride 16384/;s/+256/+16384/g;s/elements 64/elements 4096/;s/dp = 2 : i64/&, sub_group_size = 1 : i64/' %s | dsopt-opt -offload-updates | FileCheck %s --check-prefix=PARTS

// Two ranks. @b0 is sliced and its update reads the parameters; that of @b1 writes them from their master; @b2 stays.
module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<128xf32> from "m" at 0 bytes 512
  graph.parameter @w1 : tensor<128xbf16> from "m" at 512 bytes 256
  graph.parameter @w2 : tensor<128xf32> from "m" at 768 bytes 512
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>] kept in host
  dist.bucket @b1 : bf16 of [1] [#dist.range<@w1, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0 master f32 kept in host
  dist.bucket @b2 : f32 of [2] [#dist.range<@w2, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0
  func.func private @momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @master(%p: tensor<64xbf16>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xbf16>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xbf16>, tensor<64xf32>
  }
  func.func private @sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
    return %p : tensor<64xf32>
  }
  exec.program @position0 position 0 blocks [0, 3] {
    exec.memory @device device
    exec.buffer @b0.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    exec.buffer @b1.param : memref<128xbf16> parameters slots 1 stride 256 persistent stored of @b1
    exec.buffer @b1.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b1 use 0
    exec.buffer @b1.master : memref<128xf32> optimizer slots 1 stride 512 persistent master of @b1
    exec.buffer @b2.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b2
    exec.buffer @b2.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b2 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 3 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %n0 = exec.norm @b0.grad.0+256*edp of @b0 to @norms on @compute
      %u0 = exec.update @momentum of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.m] elements 64 sliced on @compute
      %g0 = exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather order 0 over @dp on @comm
      %n1 = exec.norm @b1.grad.0 of @b1 to @norms[1] on @compute
      %u1 = exec.update @master of @b1 [@b1.param, @b1.grad.0, @b1.master] elements 128 on @compute
      %n2 = exec.norm @b2.grad.0 of @b2 to @norms[2] on @compute
      %u2 = exec.update @sgd of @b2 [@b2.param, @b2.grad.0] elements 128 on @compute
      %a = exec.agree norms [@norms, @norms[1], @norms[2]] losses [@loss] order 1 over @world on @comm
    }
  }
  // It has the memories of its position.
  exec.program @evaluate0 evaluation position 0 blocks [0, 3] {
    exec.memory @device device
    exec.schedule {
    }
  }
}
// CHECK-LABEL: exec.program @position0
// CHECK: exec.memory @device device
// CHECK-NEXT: exec.memory @host host
// CHECK: exec.buffer @b0.param : memref<128xf32>
// CHECK: exec.buffer @b0.m in @host : memref<64xf32> optimizer
// CHECK: exec.buffer @b1.master in @host : memref<128xf32> optimizer
// CHECK: exec.buffer @host.param.f32 in @host : memref<128xf32> buffers slots 2 stride 512
// CHECK: exec.buffer @host.grad.f32 in @host : memref<128xf32> buffers slots 2 stride 512
// CHECK: exec.buffer @host.param.bf16 in @host : memref<128xbf16> buffers slots 2 stride 256
// CHECK: exec.norm @b0.grad.0+256*edp
// CHECK-NEXT: exec.copy @b0.param+256*edp to @host.param.f32 bytes 256 on @download
// CHECK-NEXT: exec.copy @b0.grad.0+256*edp to @host.grad.f32 bytes 256 on @download
// CHECK-NEXT: exec.update @momentum of @b0 [@host.param.f32, @host.grad.f32, @b0.m] elements 64 sliced on @host
// CHECK-NEXT: exec.copy @host.param.f32 to @b0.param+256*edp bytes 256 on @upload
// CHECK-NEXT: exec.gather
// CHECK-NEXT: exec.norm
// CHECK-NEXT: exec.copy @b1.grad.0 to @host.grad.f32[1] bytes 512 on @download
// CHECK-NEXT: exec.update @master of @b1 [@host.param.bf16[1], @host.grad.f32[1], @b1.master] elements 128 on @host
// CHECK-NEXT: exec.copy @host.param.bf16[1] to @b1.param bytes 256 on @upload
// CHECK: exec.update @sgd of @b2 [@b2.param, @b2.grad.0] elements 128 on @compute
// CHECK-LABEL: exec.program @evaluate0
// CHECK: exec.memory @host host
// CHECK: exec.stream @host host
// CHECK: exec.stream @download copy
// CHECK: exec.stream @upload copy

// WAITS: %[[DOWN:.*]] = exec.copy @b0.grad.0+256*edp to
// WAITS: exec.wait %[[DOWN]] on @host
// WAITS: %[[UPDATE:.*]] = exec.update @momentum
// WAITS: exec.wait %[[UPDATE]] on @upload
// WAITS: %[[UP:.*]] = exec.copy @host.param.f32
// WAITS: exec.wait %[[UP]] on @comm
// WAITS: exec.gather

// PLAN: copied = {device = 512 : i64, host = 1024 : i64}

// What lies on disk is read when the step begins, and written behind the update.
// DISK-LABEL: exec.program @position0
// DISK: exec.memory @device device
// DISK-NEXT: exec.memory @host host alignment 4096
// DISK-NEXT: exec.memory @disk disk alignment 4096
// DISK: exec.buffer @b0.m in @disk : memref<64xf32> optimizer
// DISK: exec.buffer @b1.master in @disk : memref<128xf32> optimizer
// DISK: exec.buffer @host.m.f32 in @host : memref<2048xf32> buffers slots 3 stride 8192
// DISK: exec.schedule
// DISK-NEXT: exec.copy @b0.m to @host.m.f32 bytes 256 on @disk
// DISK-NEXT: exec.copy @b1.master to @host.master.f32[1] bytes 512 on @disk
// DISK-NEXT: exec.norm @b0.grad.0+256*edp
// DISK-NEXT: exec.copy @b0.param+256*edp to @host.param.f32 bytes 256 on @download
// DISK-NEXT: exec.copy @b0.grad.0+256*edp to @host.grad.f32 bytes 256 on @download
// DISK-NEXT: exec.update @momentum of @b0 [@host.param.f32, @host.grad.f32, @host.m.f32] elements 64 sliced on @host
// DISK-NEXT: exec.copy @host.param.f32 to @b0.param+256*edp bytes 256 on @upload
// DISK-NEXT: exec.copy @host.m.f32 to @b0.m bytes 256 on @disk
// DISK-NEXT: exec.gather
// DISK-LABEL: exec.program @evaluate0
// DISK: exec.memory @host host alignment 4096
// DISK-NEXT: exec.memory @disk disk alignment 4096
// DISK: exec.stream @disk disk
// DISK-PLAN: copied = {device = 512 : i64, disk = 768 : i64, host = 1792 : i64}

// In parts: the first three of all are read at the beginning, the next behind what makes room for it.
// PARTS: exec.schedule
// PARTS-NEXT: exec.copy @b0.m to @host.m.f32 bytes 8192 on @disk
// PARTS-NEXT: exec.copy @b0.m+8192 to @host.m.f32[1] bytes 8192 on @disk
// PARTS-NEXT: exec.copy @b1.master to @host.master.f32[2] bytes 8192 on @disk
// PARTS-NEXT: exec.norm
// PARTS: exec.update @momentum of @b0 [@host.param.f32, @host.grad.f32, @host.m.f32] elements 2048 sliced on @host
// PARTS: exec.copy @host.m.f32 to @b0.m bytes 8192 on @disk
// PARTS-NEXT: exec.copy @b1.master+8192 to @host.master.f32 bytes 8192 on @disk
// PARTS-NEXT: exec.copy @b0.param+8192+16384*edp to @host.param.f32[1] bytes 8192 on @download
// PARTS-NEXT: exec.copy @b0.grad.0+8192+16384*edp to @host.grad.f32[1] bytes 8192 on @download
// PARTS-NEXT: exec.update @momentum of @b0 [@host.param.f32[1], @host.grad.f32[1], @host.m.f32[1]] elements 2048 from 2048 sliced on @host
