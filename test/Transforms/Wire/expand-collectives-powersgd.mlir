// RUN: dsopt-opt %s -expand-collectives | FileCheck %s
// RUN: dsopt-opt %s -expand-collectives | FileCheck %s --check-prefix=KERNELS

// Two factors of a matrix of 20 x 12, beside a vector of 50 values and a matrix of 4 x 3, which is smaller than its factors would be:
// 40 + 50 + 12 values in the first exchange, filled up to 32 for each rank, and 24 in the second, filled up to 16.
module attributes {dsopt.options = {compress_gradients = "powersgd", dp = 4 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<20x4x3xf32> from "m" at 0 bytes 960
  graph.parameter @u : tensor<50xf32> from "m" at 960 bytes 200
  graph.parameter @s : tensor<4x3xf32> from "m" at 1160 bytes 48
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 240>, #dist.range<@u, 256, 50>, #dist.range<@s, 320, 12>] elements 384 padded 512 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<512xf32> buffers slots 1 stride 2048 of @b0
    exec.buffer @t : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %0 = exec.reduce @g to @t elements 128 : f32 by all_to_all order 0 over @dp on @comm
      %2 = exec.norm @t of @b0 to @norms on @compute
      %3 = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}

// CHECK-DAG: exec.buffer @b0.worker_error : memref<512xf32> optimizer slots 1 stride 2048 persistent state "worker_error" of @b0
// CHECK-DAG: exec.buffer @b0.factor.0 : memref<24xf32> optimizer slots 1 stride 128 persistent kept "factor.0" of @b0
// CHECK: exec.map @compress.gradient.add [@g, @b0.worker_error] elements 8
// CHECK: exec.map @powersgd.begin.12 [@b0.factor.0] elements 2
// CHECK-NEXT: exec.map @powersgd.left.2.12 [@b0.worker_error, @b0.factor.0, @b0.factor.0+48, @g.left.sent, @g.left.sent+80] elements 20
// CHECK-NEXT: exec.map @powersgd.copy.50 [@b0.worker_error+1024, @g.left.sent+160] elements 1
// CHECK-NEXT: exec.map @powersgd.copy.12 [@b0.worker_error+1280, @g.left.sent+360] elements 1
// CHECK-NEXT: exec.map @compress.words.0 [@b0.worker_error, @g.left.sent+408] elements 26
// CHECK-NEXT: exec.all_to_all @g.left.sent to @g.left.received bytes 128 for 512 order 0 over @dp on @comm
// In the order of the ranks.
// CHECK-NEXT: exec.map @powersgd.sum [@g.left.received, @g.left.received+128, @g.left.sum] elements 2
// CHECK-NEXT: exec.map @powersgd.part.add [@g.left.received+256, @g.left.sum] elements 2
// CHECK-NEXT: exec.map @powersgd.sum [@g.left.sum, @g.left.received+384, @g.left+128*edp] elements 2
// CHECK-NEXT: exec.gather @g.left+128*edp to @g.left bytes 128 {{.*}}order 1 over @dp on @comm
// CHECK-NEXT: exec.map @powersgd.size.20 [@g.left, @g.sizes] elements 2
// CHECK-NEXT: exec.map @powersgd.unit.20 [@g.left, @g.sizes] elements 1
// CHECK-NEXT: exec.map @powersgd.apart.20 [@g.left, @g.left+80] elements 1
// CHECK-NEXT: exec.map @powersgd.unit.20 [@g.left+80, @g.sizes+8] elements 1
// CHECK-NEXT: exec.map @powersgd.right.2.20.12 [@b0.worker_error, @g.left, @g.left+80, @g.right.sent, @g.right.sent+48] elements 12
// CHECK-NEXT: exec.map @compress.words.0 [@b0.worker_error, @g.right.sent+96] elements 40
// CHECK-NEXT: exec.all_to_all @g.right.sent to @g.right.received bytes 64 order 2 over @dp on @comm
// CHECK: exec.gather @g.right+64*edp to @g.right bytes 64 {{.*}}order 3 over @dp on @comm
// CHECK-NEXT: exec.map @powersgd.copy.12 [@g.right, @b0.factor.0] elements 2
// CHECK-NEXT: exec.map @powersgd.product.2.12.1 [@g.left, @g.left+80, @g.right, @g.right+48, @g.made] elements 20
// CHECK-NEXT: exec.map @powersgd.product.2.12.4.subtract [@g.left, @g.left+80, @g.right, @g.right+48, @b0.worker_error] elements 20
// What went whole leaves nothing out.
// CHECK-NEXT: exec.map @powersgd.copy.50 [@g.left+160, @g.made+1024] elements 1
// CHECK-NEXT: exec.map @wire.clear [@b0.worker_error+1024] elements 50
// CHECK: exec.map @compress.taken [@g.made+512*edp, @g.takes+16*edp, @t] elements 2
// CHECK-NEXT: exec.norm @t

// KERNELS: func.func private @powersgd.right.2.20.12(%[[M:.*]]: tensor<20x12xf32>, %[[P:.*]]: tensor<20x1xf32>, %{{.*}}: tensor<20x1xf32>) -> (tensor<12xf32>, tensor<12xf32>)
// KERNELS-SAME: graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 12>
// KERNELS: %[[X:.*]] = graph.mul %[[M]], %[[P]]
// KERNELS: graph.reduce_sum %[[X]] {axes = array<i64: 0>}
// KERNELS: func.func private @powersgd.product.2.12.4.subtract
// KERNELS: graph.constant dense<4.0
// KERNELS: graph.div
// KERNELS: graph.sub
