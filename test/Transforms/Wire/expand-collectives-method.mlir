// RUN: dsopt-opt %s -expand-collectives -split-input-file -verify-diagnostics | FileCheck %s
// RUN: dsopt-opt %s -expand-collectives -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=KERNELS

// Gradients as signs. Each rank adds what it left out before, packs each slice of 128 into a record of 20 bytes, and keeps what
// that leaves out; the owner adds what it gets, but for what lies between parameters.
module attributes {dsopt.options = {compress_gradients = "onebit", dp = 2 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<100xf32> from "m" at 0 bytes 400
  graph.parameter @u : tensor<64xf32> from "m" at 400 bytes 256
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 100>, #dist.range<@u, 128, 64>] elements 192 padded 256 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<256xf32> buffers slots 1 stride 1024 of @b0
    exec.buffer @s : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %0 = exec.reduce @g to @s elements 128 : f32 by all_to_all order 0 over @dp on @comm
      %1 = exec.reduce @g to @s elements 128 : f32 by all_to_all accumulate order 1 over @dp on @comm
      %2 = exec.norm @s of @b0 to @norms on @compute
      %3 = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}

// CHECK-DAG: exec.buffer @b0.worker_error : memref<256xf32> optimizer slots 1 stride 1024 persistent state "worker_error" of @b0
// CHECK-DAG: exec.buffer @g.packed : memref<10xi32> buffers
// CHECK: exec.schedule
// CHECK-NEXT: exec.map @wire.clear [@g+400] elements 28 on @compute
// CHECK-NEXT: exec.map @wire.clear [@g+768] elements 64 on @compute
// CHECK-NEXT: exec.map @compress.gradient.add [@g, @b0.worker_error] elements 4
// A bit for each element: 100 of the first parameter, and 64 of the second.
// CHECK-NEXT: exec.map @compress.words.4294967295 [@b0.worker_error, @g.takes] elements 3
// CHECK-NEXT: exec.map @compress.words.15 [@b0.worker_error, @g.takes+12] elements 1
// CHECK-NEXT: exec.map @compress.words.4294967295 [@b0.worker_error, @g.takes+16] elements 2
// CHECK-NEXT: exec.map @compress.words.0 [@b0.worker_error, @g.takes+24] elements 2
// CHECK-NEXT: exec.map @onebit.sums [@b0.worker_error, @g.takes, @g.sums, @g.counts] elements 2
// CHECK-NEXT: exec.map @onebit.mean.2 [@g.sums, @g.counts, @g.packed] elements 1
// CHECK-NEXT: exec.map @onebit.signs [@b0.worker_error, @g.packed+4] elements 4
// CHECK-NEXT: exec.map @onebit.sums [@b0.worker_error+512, @g.takes+16, @g.sums, @g.counts] elements 2
// CHECK-NEXT: exec.map @onebit.mean.2 [@g.sums, @g.counts, @g.packed+20] elements 1
// CHECK-NEXT: exec.map @onebit.signs [@b0.worker_error+512, @g.packed+24] elements 4
// CHECK-NEXT: exec.all_to_all @g.packed to @g.received bytes 20 for 512 order 0 over @dp on @comm
// CHECK-NEXT: exec.map @onebit.scaled.subtract [@g.packed+4, @g.packed, @b0.worker_error] elements 4
// CHECK-NEXT: exec.map @onebit.scaled.subtract [@g.packed+24, @g.packed+20, @b0.worker_error+512] elements 4
// CHECK-NEXT: exec.map @wire.clear [@b0.worker_error+400] elements 28
// CHECK-NEXT: exec.map @wire.clear [@b0.worker_error+768] elements 64
// The second reduction needs the first one's sum.
// CHECK-NEXT: exec.map @onebit.scaled [@g.received+4, @g.received, @g.sum] elements 4
// CHECK-NEXT: exec.map @onebit.scaled.add [@g.received+24, @g.received+20, @g.sum] elements 4
// CHECK-NEXT: exec.map @compress.taken [@g.sum, @g.takes+16*edp, @s] elements 2
// CHECK: exec.all_to_all @g.packed to @g.received bytes 20 for 512 order 1 over @dp on @comm
// CHECK: exec.map @compress.taken.add [@g.sum, @g.takes+16*edp, @s] elements 2
// CHECK-NEXT: exec.norm @s

// KERNELS: func.func private @onebit.scaled.subtract(%[[W:.*]]: tensor<64xi32>, %[[S:.*]]: tensor<1xf32>, %[[E:.*]]: tensor<64x32xf32>) -> tensor<64x32xf32>
// KERNELS-SAME: graph.in_place = array<i64: 2>
// KERNELS: %[[X:.*]] = graph.mul
// KERNELS: graph.sub %[[E]], %[[X]]

// -----

// Between ranks of one, nothing travels.
module attributes {dsopt.options = {compress_gradients = "onebit", dp = 1 : i64}} {
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @alone : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @s : memref<128xf32> gradients slots 1 stride 512
    exec.schedule {
      %0 = exec.reduce @alone to @s elements 128 : f32 by all_to_all order 0 over @dp on @comm
    }
  }
}

// CHECK-LABEL: dp = 1
// CHECK: exec.reduce @alone to @s elements 128 : f32 order 0 over @dp on @comm

// -----

module attributes {dsopt.options = {compress_gradients = "onebit", dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @s : memref<64xf32> gradients slots 1 stride 256
    exec.schedule {
      // expected-error @below {{of @g travels by a method, expected the gradient of a bucket}}
      %0 = exec.reduce @g to @s elements 64 : f32 by all_to_all order 0 over @dp on @comm
    }
  }
}

// -----

module attributes {dsopt.options = {compress_gradients = "onebit", dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  graph.parameter @w : tensor<128xbf16> from "m" at 0 bytes 256
  dist.bucket @b0 : bf16 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<128xbf16> buffers slots 1 stride 256 of @b0
    exec.buffer @s : memref<64xbf16> gradients slots 1 stride 128 accumulator of @b0 use 0
    exec.schedule {
      // expected-error @below {{of 'bf16' travels by a method, expected f32}}
      %0 = exec.reduce @g to @s elements 64 : bf16 by all_to_all order 0 over @dp on @comm
    }
  }
}

// -----

// expected-error @below {{option compress_gradients is "twobit", expected one of onebit}}
module attributes {dsopt.options = {compress_gradients = "twobit", dp = 2 : i64}} {
}
