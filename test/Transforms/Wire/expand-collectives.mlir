// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW/as bf16/' %s | dsopt-opt -expand-collectives | FileCheck %s --check-prefix=NARROW
// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW/by all_to_all/' %s | dsopt-opt -expand-collectives | FileCheck %s --check-prefix=PARTS
// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW/fast/' %s | dsopt-opt -expand-collectives | FileCheck %s --check-prefix=FAST
// RUN: sed -e 's/ACCUMULATE//;s/HOW/as bf16 by all_to_all/' %s | dsopt-opt -expand-collectives | FileCheck %s --check-prefix=BOTH
// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW//' %s | dsopt-opt -expand-collectives > %t.as-it-is
// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW//' %s | dsopt-opt | diff %t.as-it-is -
// RUN: sed -e 's/ACCUMULATE/accumulate/;s/HOW/by all_to_all/' %s | dsopt-opt -expand-collectives -insert-waits | FileCheck %s --check-prefix=WAITS

// Three ranks. What the first reduction makes of the gradient is there before the second takes it further, and
// what that makes before the norm: not earlier.
module attributes {dsopt.options = {dp = 3 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 3, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @send communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<192xf32> from "m" at 0 bytes 768
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 192>] elements 192 padded 192 over [edp, ep, sp] zero 2
  // The model's own: the kernels get other names.
  graph.parameter @wire.widen.bf16 : tensor<4xf32> from "m" at 0 bytes 16
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<192xf32> buffers slots 1 stride 768 of @b0 {payload = 400 : i64}
    exec.buffer @s : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @norms : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.schedule {
      %0 = exec.reduce @g to @s elements 64 : f32 order 0 over @dp on @comm
      %1 = exec.reduce @g to @s elements 64 : f32 HOW ACCUMULATE order 1 over @dp on @comm
      exec.wait %1 on @send
      %2 = exec.add @loss, @loss elements 1 : f32 on @compute
      %3 = exec.norm @s of @b0 to @norms on @compute
      %4 = exec.agree norms [@norms] losses [@loss] order 2 over @world on @comm
    }
  }
}

// NARROW: exec.buffer @g.wire : memref<192xbf16> buffers slots 1 stride 384 {payload = 200 : i64}
// NARROW: exec.buffer @g.sum : memref<64xbf16> buffers slots 1 stride 128
// NARROW: exec.reduce @g to @s elements 64 : f32 order 0 over @dp on @comm
// NARROW-NEXT: exec.map @wire.narrow.f32 [@g, @g.wire] elements 192 on @compute
// NARROW-NEXT: %[[SUM:.*]] = exec.reduce @g.wire to @g.sum elements 64 : bf16 order 1 over @dp on @comm
// NARROW-NEXT: exec.wait %[[SUM]] on @send
// NARROW-NEXT: exec.add @loss
// NARROW-NEXT: exec.map @wire.accumulate.bf16 [@s, @g.sum] elements 64 on @compute
// NARROW-NEXT: exec.norm
// NARROW: func.func private @wire.narrow.f32(%[[X:.*]]: tensor<64xf32>) -> tensor<64xbf16> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>}
// NARROW-NEXT: graph.cast %[[X]]
// NARROW: func.func private @wire.accumulate.bf16(%[[T:.*]]: tensor<64xf32>, %[[S:.*]]: tensor<64xbf16>) -> tensor<64xf32> attributes {graph.in_place = array<i64: 0>
// NARROW-NEXT: %[[WIDE:.*]] = graph.cast %[[S]] : (tensor<64xbf16>) -> tensor<64xf32>
// NARROW-NEXT: graph.add %[[T]], %[[WIDE]]

// The engine stores what it adds in its own order.
// FAST: exec.buffer @g.sum : memref<64xf32> buffers slots 1 stride 256
// FAST-NOT: exec.map
// FAST: exec.reduce @g to @g.sum elements 64 : f32 fast order 1 over @dp on @comm
// FAST: exec.add @s, @g.sum elements 64 : f32 on @compute
// FAST-NEXT: exec.norm

// PARTS: exec.buffer @g.parts : memref<192xf32> buffers slots 1 stride 768
// PARTS-NOT: exec.map
// PARTS: %[[EXCHANGE:.*]] = exec.all_to_all @g to @g.parts bytes 256 order 1 over @dp on @comm
// PARTS-NEXT: exec.wait %[[EXCHANGE]] on @send
// PARTS-NEXT: exec.add @loss
// PARTS-NEXT: exec.add @g.parts, @g.parts+256 elements 64 : f32 on @compute
// PARTS-NEXT: exec.add @g.parts, @g.parts+512 elements 64 : f32 on @compute
// PARTS-NEXT: exec.add @s, @g.parts elements 64 : f32 on @compute
// PARTS-NEXT: exec.norm

// WAITS: %[[EXCHANGE:.*]] = exec.all_to_all
// WAITS: exec.add @loss
// WAITS-NEXT: exec.wait %[[EXCHANGE]] on @compute
// WAITS-NEXT: exec.add @g.parts

// BOTH: exec.map @wire.narrow.f32 [@g, @g.wire] elements 192 on @compute
// BOTH-NEXT: exec.all_to_all @g.wire to @g.parts bytes 128 for 256 order 1 over @dp on @comm
// BOTH: exec.add @g.parts, @g.parts+128 elements 64 : bf16 on @compute
// BOTH-NEXT: exec.map @wire.sum.bf16 [@g.parts, @g.parts+256, @s] elements 64 on @compute
// BOTH-NEXT: exec.norm
// BOTH: func.func private @wire.sum.bf16
// BOTH: graph.add %{{.*}} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
// BOTH-NEXT: graph.cast %{{.*}} : (tensor<64xf32>) -> tensor<64xbf16>
// BOTH-NEXT: graph.cast %{{.*}} : (tensor<64xbf16>) -> tensor<64xf32>
