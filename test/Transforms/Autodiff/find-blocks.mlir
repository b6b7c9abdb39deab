// RUN: dsopt-opt %s -split-input-file -find-blocks | FileCheck %s

// A perceptron of three products has three blocks: one value is alive at both
// candidates, and the graph's ends count as more.

// CHECK-LABEL: module @perceptron attributes {graph.blocks = 3 : i64}
module @perceptron {
  graph.parameter @w0 : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @w1 : tensor<8x8xf32> from "m" at 128 bytes 256
  graph.parameter @w2 : tensor<8x2xf32> from "m" at 384 bytes 64
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<f32> {
    // All reads come first: each moves to its use.
    %w0 = graph.read @w0 : tensor<4x8xf32>
    %w1 = graph.read @w1 : tensor<8x8xf32>
    %w2 = graph.read @w2 : tensor<8x2xf32>
    // CHECK: graph.read @w0 {graph.block = 0 : i64}
    // CHECK-NEXT: graph.matmul {{.*}}graph.block = 0
    // CHECK-NEXT: graph.relu {{.*}}graph.block = 0
    // CHECK-NEXT: graph.read @w1 {graph.block = 1 : i64}
    // CHECK-NEXT: graph.matmul {{.*}}graph.block = 1
    // CHECK-NEXT: graph.relu {{.*}}graph.block = 1
    // CHECK-NEXT: graph.read @w2 {graph.block = 2 : i64}
    // CHECK-NEXT: graph.matmul {{.*}}graph.block = 2
    // CHECK-NEXT: graph.reduce_sum {{.*}}graph.block = 2
    %0 = graph.matmul %x, %w0 : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %1 = graph.relu %0 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %2 = graph.matmul %1, %w1 : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
    %3 = graph.relu %2 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %4 = graph.matmul %3, %w2 : (tensor<3x8xf32>, tensor<8x2xf32>) -> tensor<3x2xf32>
    %5 = graph.reduce_sum %4 {axes = array<i64: 0, 1>} : (tensor<3x2xf32>) -> tensor<f32>
    return %5 : tensor<f32>
  }
}

// -----

// Inside a residual branch two values are alive, so nothing is cut there; the
// embedding belongs to the block after it; the tied table is read through a
// transpose, by two blocks; the branch's reshape of %0 is no value of its own.

// CHECK-LABEL: module @residual attributes {graph.blocks = 2 : i64}
module @residual {
  graph.parameter @table : tensor<16x4xf32> from "m" at 0 bytes 256
  graph.parameter @up : tensor<4x8xf32> from "m" at 256 bytes 128
  graph.parameter @down : tensor<8x4xf32> from "m" at 384 bytes 128
  func.func @forward(%ids: tensor<3xi64>) -> tensor<f32> {
    %table = graph.read @table : tensor<16x4xf32>
    %head = graph.transpose %table {perm = array<i64: 1, 0>} : (tensor<16x4xf32>) -> tensor<4x16xf32>
    %up = graph.read @up : tensor<4x8xf32>
    %down = graph.read @down : tensor<8x4xf32>
    // CHECK: graph.read @table {graph.block = 0 : i64}
    // CHECK-NEXT: graph.gather {{.*}}graph.block = 0
    %0 = graph.gather %table, %ids {axis = 0 : i64} : (tensor<16x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
    %1 = graph.reshape %0 : (tensor<3x4xf32>) -> tensor<1x3x4xf32>
    %2 = graph.reshape %1 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    %3 = graph.matmul %2, %up : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %4 = graph.relu %3 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %5 = graph.matmul %4, %down : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
    // CHECK: graph.add {{.*}}graph.block = 0
    %6 = graph.add %5, %0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    // CHECK-NEXT: graph.read @table {graph.block = 1 : i64}
    // CHECK-NEXT: graph.transpose {{.*}}graph.block = 1
    // CHECK-NEXT: graph.matmul {{.*}}graph.block = 1
    %7 = graph.matmul %6, %head : (tensor<3x4xf32>, tensor<4x16xf32>) -> tensor<3x16xf32>
    %8 = graph.reduce_sum %7 {axes = array<i64: 0, 1>} : (tensor<3x16xf32>) -> tensor<f32>
    return %8 : tensor<f32>
  }
}

// -----

// What is made from inputs alone is made in each block that uses it; what nothing
// uses is removed; two uses of a parameter are two reads.

// CHECK-LABEL: module @mask attributes {graph.blocks = 2 : i64}
module @mask {
  graph.parameter @w0 : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @w1 : tensor<4x4xf32> from "m" at 64 bytes 64
  func.func @forward(%x: tensor<3x4xf32>, %m: tensor<3x1xi64>) -> tensor<f32> {
    %w0 = graph.read @w0 : tensor<4x4xf32>
    %w1 = graph.read @w1 : tensor<4x4xf32>
    %unused = graph.neg %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %mask = graph.cast %m : (tensor<3x1xi64>) -> tensor<3x1xf32>
    // CHECK-NOT: graph.neg
    // CHECK: graph.matmul {{.*}}graph.block = 0
    // CHECK: graph.cast %{{.*}} {graph.block = 0 : i64}
    %0 = graph.matmul %x, %w0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %1 = graph.mul %0, %mask : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
    // CHECK: graph.read @w1 {graph.block = 1 : i64}
    // CHECK: graph.cast %{{.*}} {graph.block = 1 : i64}
    // CHECK: graph.read @w1 {graph.block = 1 : i64}
    %2 = graph.matmul %1, %w1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %3 = graph.mul %2, %mask : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
    %4 = graph.matmul %1, %w1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %5 = graph.add %3, %4 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %6 = graph.reduce_sum %5 {axes = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
    return %6 : tensor<f32>
  }
}

// -----

// Products with what is made of parameters alone count too: an exporter reorders a recurrence's gates.

// CHECK-LABEL: module @reordered attributes {graph.blocks = 2 : i64}
module @reordered {
  graph.parameter @w0 : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @w1 : tensor<4x4xf32> from "m" at 64 bytes 64
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 : tensor<4x4xf32>
    %a0 = graph.slice %w0 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %b0 = graph.slice %w0 {starts = array<i64: 2, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %v0 = graph.concat %b0, %a0 {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    // CHECK: graph.matmul {{.*}}graph.block = 0
    %0 = graph.matmul %x, %v0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    // CHECK: graph.read @w1 {graph.block = 1 : i64}
    %w1 = graph.read @w1 : tensor<4x4xf32>
    %a1 = graph.slice %w1 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %b1 = graph.slice %w1 {starts = array<i64: 2, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    // CHECK: graph.concat {{.*}}graph.block = 1
    %v1 = graph.concat %b1, %a1 {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    // CHECK: graph.matmul {{.*}}graph.block = 1
    %1 = graph.matmul %0, %v1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %2 = graph.reduce_sum %1 {axes = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
