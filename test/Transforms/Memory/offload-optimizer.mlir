// RUN: dsopt-opt %s -offload-optimizer=to=cpu | FileCheck %s --check-prefix=ALL
// RUN: dsopt-opt %s "-offload-optimizer=to=cpu ratio=0.5" | FileCheck %s --check-prefix=HALF
// RUN: dsopt-opt %s -offload-optimizer=to=nvme | sed 's/kept in disk/kept in host/' | FileCheck %s --check-prefix=ALL
// RUN: dsopt-opt %s -offload-optimizer=to=nvme | FileCheck %s --check-prefix=DISK
// RUN: dsopt-opt %s -offload-optimizer | FileCheck %s --check-prefix=NONE
// RUN: not dsopt-opt %s "-offload-optimizer=to=cpu ratio=2" 2>&1 | FileCheck %s --check-prefix=RATIO

// Frozen buckets and those without state stay as they are. A half stays of each stage by itself: the first blocks.
// ALL: @b1 {{.*}} kept in host
// ALL: @b0 {{.*}} kept in host
// ALL: @b2 {{.*}} kept in host
// ALL: @b3 {{.*}} kept in host
// ALL: dist.bucket @frozen
// ALL-NOT: kept in
// HALF: dist.bucket @b1 {{.*}}>] kept in host
// HALF: dist.bucket @b0 {{.*}}>]{{$}}
// HALF: dist.bucket @b2 {{.*}}>]{{$}}
// HALF: dist.bucket @b3 {{.*}}>] kept in host
// DISK-COUNT-4: kept in disk
// NONE-NOT: kept in
// RATIO: error: the share of updates that stays on the device is 2, expected a number from 0 to 1
module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w0 : tensor<128xf32> from "m" at 0 bytes 512
  graph.parameter @w1 : tensor<128xf32> from "m" at 512 bytes 512
  graph.parameter @w2 : tensor<128xf32> from "m" at 1024 bytes 512
  graph.parameter @w3 : tensor<256xf32> from "m" at 1536 bytes 1024
  graph.parameter @w4 : tensor<128xf32> from "m" at 2560 bytes 512 frozen
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>]
  dist.bucket @b2 : f32 of [2] [#dist.range<@w2, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>]
  dist.bucket @b3 : f32 of [3] [#dist.range<@w3, 0, 256>] elements 256 padded 256 over [edp, ep, sp] zero 1 states [#dist.state<"m" : f32>]
  dist.bucket @frozen : f32 of [3] [#dist.range<@w4, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1 frozen
  func.func private @block0.F() attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F() attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block2.F() attributes {dist.stage = 1 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  func.func private @block3.F() attributes {dist.stage = 1 : i64, graph.block = 3 : i64, graph.phase = #graph.phase<F>}
}
