// RUN: dsopt-opt %s -expand-collectives -split-input-file -verify-diagnostics | FileCheck %s

// Two nodes of two ranks. Each slice of 64 is quantized, those of the owners with the first place in their nodes first; what
// the node has added goes on when the next reduction starts, or its sum is needed. What lies between parameters is cleared.
module attributes {dsopt.options = {dp = 4 : i64, node_size = 2 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<100xf32> from "m" at 0 bytes 400
  graph.parameter @v : tensor<256xf32> from "m" at 400 bytes 1024
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 100>, #dist.range<@u, 128, 64>] elements 192 padded 256 over [edp, ep, sp] zero 2
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 256>] elements 256 padded 256 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @g : memref<256xf32> buffers slots 1 stride 1024 of @b0
    exec.buffer @h : memref<256xf32> buffers slots 1 stride 1024 of @b1
    exec.buffer @s : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @t : memref<64xf32> gradients slots 1 stride 256 accumulator of @b1 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %0 = exec.reduce @g to @s elements 64 : f32 as i4 by all_to_all order 0 over @dp on @comm
      %1 = exec.reduce @h to @t elements 64 : f32 as i4 by all_to_all accumulate order 1 over @dp on @comm
      %2 = exec.norm @s of @b0 to @norms on @compute
      %3 = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}

// A slice: 32 pairs and two scales.
// CHECK-DAG: exec.buffer @g.wire : memref<160xi8> buffers
// CHECK-DAG: exec.buffer @g.parts : memref<160xi8> buffers
// CHECK-DAG: exec.buffer @g.sums : memref<128xf32> buffers
// CHECK-DAG: exec.buffer @g.sums.parts : memref<80xi8> buffers
// CHECK: exec.schedule
// CHECK-NEXT: exec.map @wire.clear [@g+400] elements 28 on @compute
// CHECK-NEXT: exec.map @wire.clear [@g+768] elements 64 on @compute
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g, @g+128, @g.wire, @g.wire+32, @g.wire+36] elements 1 grain 4 on @compute
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g+512, @g+640, @g.wire+40, @g.wire+72, @g.wire+76] elements 1
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g+256, @g+384, @g.wire+80,
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g+768, @g+896, @g.wire+120,
// CHECK-NEXT: exec.all_to_all @g.wire to @g.parts bytes 80 for 512 order 0 over @node on @comm
// The second reduction starts: the first one's sums of both nodes' owners go on.
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@g.parts, @g.parts+32, @g.parts+36, @g.sums, @g.sums+128] elements 1
// CHECK-NEXT: exec.map @wire.accumulate.pairs.32 [@g.sums, @g.sums+128, @g.parts+80, @g.parts+112, @g.parts+116] elements 1
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g.sums, @g.sums+128, @g.sums.wire, @g.sums.wire+32, @g.sums.wire+36] elements 1
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@g.parts+40, @g.parts+72, @g.parts+76, @g.sums+256, @g.sums+384] elements 1
// CHECK-NEXT: exec.map @wire.accumulate.pairs.32 [@g.sums+256, @g.sums+384, @g.parts+120, @g.parts+152, @g.parts+156] elements 1
// CHECK-NEXT: exec.map @wire.quantize.pairs.32 [@g.sums+256, @g.sums+384, @g.sums.wire+40, @g.sums.wire+72, @g.sums.wire+76] elements 1
// CHECK-NEXT: exec.all_to_all @g.sums.wire to @g.sums.parts bytes 40 for 256 order 1 over @across on @comm
// CHECK-COUNT-4: exec.map @wire.quantize.pairs.32 [@h
// CHECK-NEXT: exec.all_to_all @h.wire to @h.parts bytes 80 for 512 order 2 over @node on @comm
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@g.sums.parts, @g.sums.parts+32, @g.sums.parts+36, @s, @s+128] elements 1
// CHECK-NEXT: exec.map @wire.accumulate.pairs.32 [@s, @s+128, @g.sums.parts+40, @g.sums.parts+72, @g.sums.parts+76] elements 1
// CHECK-NEXT: exec.norm @s
// CHECK-NEXT: exec.agree {{.*}} order 3
// What adds to an accumulator is one sum.
// CHECK: exec.all_to_all @h.sums.wire to @h.sums.parts bytes 40 for 256 order 4 over @across on @comm
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@h.sums.parts, @h.sums.parts+32, @h.sums.parts+36, @h.sum, @h.sum+128]
// CHECK-NEXT: exec.map @wire.accumulate.pairs.32 [@h.sum, @h.sum+128,
// CHECK-NEXT: exec.add @t, @h.sum elements 64 : f32 on @compute
// CHECK: exec.communicator @node over [edp inner 2]
// CHECK: exec.communicator @across over [edp outer 2]
// CHECK: func.func private @wire.quantize.pairs.32(%{{.*}}: tensor<64x32xf32>, %{{.*}}: tensor<64x32xf32>) -> (tensor<64x32xi8>, tensor<64x1xf32>, tensor<64x1xf32>)
// CHECK: func.func private @wire.accumulate.pairs.32({{.*}}) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {graph.in_place = array<i64: 0, 1>

// -----

// A rank's part of a whole gradient is written at once; in one node a single exchange is left.
module attributes {dsopt.options = {dp = 2 : i64, zero = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b0 use 0
    exec.schedule {
      %0 = exec.reduce @b0.grad.0 to @b0.grad.0+256*edp elements 64 : f32 as i4 by all_to_all order 0 over @dp on @comm
    }
  }
}

// CHECK-LABEL: dp = 2
// CHECK: exec.all_to_all @b0.grad.0.wire to @b0.grad.0.parts bytes 40 for 256 order 0 over @dp on @comm
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@b0.grad.0.parts, {{.*}}, @b0.grad.0.sum, @b0.grad.0.sum+128]
// CHECK-NEXT: exec.map @wire.dequantize.pairs.32 [@b0.grad.0.parts+40, {{.*}}, @b0.grad.0.last, @b0.grad.0.last+128]
// CHECK-NEXT: exec.map @wire.sum.f32 [@b0.grad.0.sum, @b0.grad.0.last, @b0.grad.0+256*edp] elements 64 on @compute

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @g : memref<128xf32> buffers slots 1 stride 512
  exec.buffer @s : memref<64xf32> gradients slots 1 stride 256
  exec.schedule {
    // expected-error @below {{of @g travels as 'i4', expected the gradient of a bucket}}
    %0 = exec.reduce @g to @s elements 64 : f32 as i4 by all_to_all order 0 over @dp on @comm
  }
}

// -----

module {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 2, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  graph.parameter @w : tensor<256xf32> from "m" at 0 bytes 1024
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 256>] elements 256 padded 256 over [edp, ep, sp] zero 2
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<256xf32> buffers slots 1 stride 1024 of @b0
    exec.buffer @s : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.schedule {
      // expected-error @below {{goes as int4 by nodes of data-parallel ranks, but there are 2 ranks along sp, too: expected one}}
      %0 = exec.reduce @g to @s elements 64 : f32 as i4 by all_to_all order 0 over @dp on @comm
    }
  }
}
