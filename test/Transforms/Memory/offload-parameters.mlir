// RUN: dsopt-opt %s -offload-parameters=to=cpu | FileCheck %s
// RUN: dsopt-opt %s -offload-parameters=to=nvme | sed 's/ in disk/ in host/' | FileCheck %s
// RUN: dsopt-opt %s -offload-parameters=to=nvme | FileCheck %s --check-prefix=DISK
// RUN: dsopt-opt %s -offload-parameters | FileCheck %s --check-prefix=NONE
// RUN: sed 's/zero = 3/zero = 2/' %s | not dsopt-opt -offload-parameters=to=cpu 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/offload_optimizer = "cpu", //' %s | not dsopt-opt -offload-parameters=to=cpu 2>&1 | FileCheck %s --check-prefix=OPTIMIZER

// Frozen ones too; running statistics are cut by no stage, and what two stages share is sent between devices.
// CHECK: dist.bucket @b0 {{.*}} zero 3 in host states
// CHECK: dist.bucket @frozen {{.*}} zero 3 in host frozen
// CHECK: dist.bucket @statistics {{.*}} zero 0 frozen
// CHECK: dist.bucket @shared {{.*}} zero 3 states
// DISK: dist.bucket @b0 {{.*}} zero 3 in disk states
// NONE-NOT: in host
// ZERO: error: -offload-params=cpu needs -zero=3
// OPTIMIZER: error: -offload-params=cpu needs -offload-optimizer=cpu
module attributes {dsopt.options = {dp = 1 : i64, offload_optimizer = "cpu", zero = 3 : i64}} {
  graph.parameter @w0 : tensor<64xf32> from "m" at 0 bytes 256
  graph.parameter @w1 : tensor<64xf32> from "m" at 256 bytes 256
  graph.parameter @w2 : tensor<64xf32> from "m" at 512 bytes 256
  graph.parameter @w3 : tensor<64xf32> from "m" at 768 bytes 256
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3 states [#dist.state<"m" : f32>]
  dist.bucket @frozen : f32 of [1] [#dist.range<@w1, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3 frozen
  dist.bucket @statistics : f32 of [1] [#dist.range<@w2, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0 frozen
  dist.bucket @shared : f32 of [0, 1] [#dist.range<@w3, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3 states [#dist.state<"m" : f32>]
  func.func private @block0.F() attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F() attributes {dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
}
