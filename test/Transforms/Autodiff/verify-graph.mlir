// RUN: dsopt-opt %s -find-blocks -build-backward -append-optimizer -verify-graph | FileCheck %s

// What the three passes make is right; the check changes nothing.

// CHECK: func @micro_batch
// CHECK: func @update
graph.parameter @w : tensor<4x4xf32> from "m" at 0 bytes 64
graph.parameter @b : tensor<4xf32> from "m" at 64 bytes 16
func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
  %w = graph.read @w : tensor<4x4xf32>
  %b = graph.read @b : tensor<4xf32>
  %0 = graph.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = graph.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = graph.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = graph.add %2, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %4 = graph.reduce_mean %3 {axes = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
