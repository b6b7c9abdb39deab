// RUN: dsopt-opt %s -expand-collectives | FileCheck %s
// RUN: dsopt-opt %s -expand-collectives | FileCheck %s --check-prefix=KERNELS

// The largest two of each 128 elements, and of the 64 that are left. A record is the first and the second values of the blocks, then
// the places of the first and of the second, 20 bytes.
module attributes {dsopt.options = {compress_gradients = "topk{k=2,block=128}", dp = 2 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<384xf32> from "m" at 0 bytes 1536
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 384>] elements 384 padded 384 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<384xf32> buffers slots 1 stride 1536 of @b0
    exec.buffer @s : memref<192xf32> gradients slots 1 stride 768 accumulator of @b0 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %0 = exec.reduce @g to @s elements 192 : f32 by all_to_all order 0 over @dp on @comm
      %2 = exec.norm @s of @b0 to @norms on @compute
      %3 = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}

// CHECK: exec.map @topk.taken.2.128 [@b0.worker_error, @g.packed, @g.packed+8, @g.packed+16, @g.packed+18] elements 1
// CHECK-NEXT: exec.map @topk.taken.2.64 [@b0.worker_error+512, @g.packed+4, @g.packed+12, @g.packed+17, @g.packed+19] elements 1
// CHECK-NEXT: exec.map @topk.taken.2.128 [@b0.worker_error+768, @g.packed+20, @g.packed+28, @g.packed+36, @g.packed+38] elements 1
// CHECK-NEXT: exec.map @topk.taken.2.64 [@b0.worker_error+1280, @g.packed+24, @g.packed+32, @g.packed+37, @g.packed+39] elements 1
// CHECK-NEXT: exec.all_to_all @g.packed to @g.received bytes 20 for 768 order 0 over @dp on @comm
// CHECK-NEXT: exec.map @topk.placed.2.128.subtract [@g.packed, @g.packed+8, @g.packed+16, @g.packed+18, @b0.worker_error] elements 1
// CHECK: exec.map @topk.placed.2.128 [@g.received, @g.received+8, @g.received+16, @g.received+18, @g.sum] elements 1
// CHECK-NEXT: exec.map @topk.placed.2.64 [@g.received+4, @g.received+12, @g.received+17, @g.received+19, @g.sum+512] elements 1
// CHECK-NEXT: exec.map @topk.placed.2.128.add [@g.received+20,

// KERNELS: func.func private @topk.taken.2.128(%[[X:.*]]: tensor<64x128xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xi8>, tensor<64x1xi8>)
// KERNELS: %[[BITS:.*]] = graph.bitcast %[[X]]
// KERNELS: %[[SIZE:.*]] = graph.and %[[BITS]]
// KERNELS: %[[PLACE:.*]] = graph.iota {axis = 1 : i64}
// KERNELS: %[[MOST:.*]] = graph.reduce_max %[[SIZE]]
// KERNELS: %[[HIT:.*]] = graph.equal %[[SIZE]], %[[MOST]]
// KERNELS: %[[FIRST:.*]] = graph.where %[[HIT]], %[[PLACE]]
// KERNELS: %[[AT:.*]] = graph.reduce_min %[[FIRST]]
// KERNELS: graph.gather_elements %[[X]], %[[AT]]
// What is behind it: smaller, or as large and later.
// KERNELS: graph.less %[[SIZE]], %[[MOST]]
// KERNELS: graph.greater %[[PLACE]], %[[AT]]
