// RUN: dsopt-opt %s -rematerialize-elementwise | FileCheck %s

graph.parameter @b : tensor<64xf32> from "model.onnx" at 0 bytes 256

// The sum is saved; tanh and what W reads are computed again from it.
// CHECK-LABEL: func.func @micro_batch
func.func @micro_batch(%x: tensor<64x64xf32>, %g: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) {
  // CHECK: %[[Y:.*]] = graph.matmul
  %y = graph.matmul %x, %x {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.read @b {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<64xf32>
  // CHECK: %[[A:.*]] = graph.add %[[Y]]
  %a = graph.add %y, %b {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  %t = graph.tanh %a {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = graph.mul %a, %t {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: %[[T:.*]] = graph.tanh %[[A]] {graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  // CHECK: %[[Z:.*]] = graph.mul %[[A]], %[[T]] {{.*}}#graph.phase<B>
  // CHECK: %[[D:.*]] = graph.mul %{{.*}}, %[[T]] {{.*}}#graph.phase<B>
  // CHECK: graph.mul %[[D]], %[[A]] {{.*}}#graph.phase<B>
  %r = graph.read @b {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : tensor<64xf32>
  %d = graph.mul %g, %t {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = graph.mul %d, %a {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = graph.mul %e, %r {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  // CHECK: graph.reduce_sum %[[Z]]
  %w = graph.reduce_sum %z {axes = array<i64: 0>, graph.block = 0 : i64, graph.phase = #graph.phase<W>} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %z, %f, %w : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
}

