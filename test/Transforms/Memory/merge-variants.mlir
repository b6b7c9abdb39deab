// RUN: dsopt-opt %s -merge-variants | FileCheck %s

// Runs, blocks and kernels come with names of their own, as they name each other; parameters, states, buckets
// and the update are the module's.
// CHECK-LABEL: graph.parameter @w
// CHECK-NOT: graph.parameter
// CHECK: func.func @update
// CHECK: func.func @micro_batch(%{{.*}}: tensor<8xf32>)
// CHECK: graph.run @block0.F
// CHECK-NOT: module
// CHECK-NOT: @update
// CHECK: func.func private @kernel0.4
// CHECK: func.func private @block0.F.4(%{{.*}}: tensor<4xf32>
// CHECK: graph.kernel @kernel0.4
// CHECK: func.func @micro_batch.4(%{{.*}}: tensor<4xf32>){{.*}} attributes {exec.variant = 4 : i64}
// CHECK: graph.run @block0.F.4
// CHECK-NOT: @update
graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4>] elements 64 padded 64 over [edp, ep, sp] zero 0
func.func @update(%s: tensor<16xf32>) {
  %0 = graph.read @w : tensor<4xf32>
  graph.write @w, %0 : tensor<4xf32>
  return
}
func.func private @block0.F(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
func.func @micro_batch(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = graph.run @block0.F(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
module attributes {exec.variant = 4 : i64} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4>] elements 64 padded 64 over [edp, ep, sp] zero 0
  func.func @update(%s: tensor<16xf32>) {
    %0 = graph.read @w : tensor<4xf32>
    graph.write @w, %0 : tensor<4xf32>
    return
  }
  func.func private @kernel0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
    %0 = graph.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = graph.kernel @kernel0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @micro_batch(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
