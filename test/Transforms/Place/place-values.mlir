// RUN: dsopt-opt %s -split-input-file "-place-values=shards=2 ranks=2" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-place-values=shards=4 ranks=1" | FileCheck %s --check-prefix=ALONE
// RUN: dsopt-opt %s -split-input-file "-place-values=shards=1" | FileCheck %s --check-prefix=WHOLE

// Columns, then rows: a rank's shard of both, the sum of the pieces, and the bias once behind it. Which
// elements a shard has of the whole: rows of w1 follow each other, those of w2 are runs.

// CHECK-LABEL: module @perceptron
// CHECK: graph.parameter @w1 : tensor<8x16xf32>
// CHECK-NEXT: graph.parameter @w1.shard.0 : tensor<8x8xf32> {{.*}}part_begin = 0 : i64, part_of = @w1, part_runs = #graph.runs<8 every 16 step 8>
// CHECK: graph.parameter @b1.shard.0 : tensor<8xf32> {{.*}}part_runs = #graph.runs<8 every 16 step 8>
// CHECK: graph.parameter @w2.shard.0 : tensor<8x8xf32> {{.*}}part_runs = #graph.runs<64 every 128 step 64>
// CHECK: graph.parameter @b2 : tensor<8xf32>
// CHECK-NOT: @b2.shard
// CHECK: [[X:%.*]] = dist.shared %arg0 over [tp] {graph.block = 0 : i64} : tensor<4x8xf32> 1
// CHECK: [[H:%.*]] = graph.matmul [[X]], {{.*}}-> tensor<4x8xf32>
// CHECK: [[A:%.*]] = graph.add [[H]]
// CHECK: [[G:%.*]] = graph.gelu [[A]]
// CHECK: [[P:%.*]] = graph.matmul [[G]], {{.*}}{graph.block = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: [[Y:%.*]] = dist.all_reduce [[P]] over [tp] {graph.block = 1 : i64} : tensor<4x8xf32>
// CHECK: graph.add [[Y]], {{.*}}b2

// Four shards of one rank: neighbours are added first, and nothing moves.
// ALONE-LABEL: module @perceptron
// ALONE: graph.parameter @w1.shard.3 : tensor<8x4xf32> {{.*}}part_begin = 12 : i64, part_of = @w1, part_runs = #graph.runs<4 every 16 step 16>
// ALONE: %{{.*}}:4 = dist.shared %arg0 over [] {{.*}} : tensor<4x8xf32> 4
// ALONE: [[P0:%.*]] = graph.matmul {{.*}}(tensor<4x4xf32>, tensor<4x8xf32>)
// ALONE-NEXT: [[P1:%.*]] = graph.matmul
// ALONE-NEXT: [[P2:%.*]] = graph.matmul
// ALONE-NEXT: [[P3:%.*]] = graph.matmul
// ALONE-NEXT: [[S0:%.*]] = graph.tree_add [[P0]], [[P1]]
// ALONE-NEXT: [[S1:%.*]] = graph.tree_add [[P2]], [[P3]]
// ALONE-NEXT: [[S:%.*]] = graph.tree_add [[S0]], [[S1]]
// ALONE-NOT: all_reduce

// WHOLE-LABEL: module @perceptron
// WHOLE-NOT: .shard.
module @perceptron {
  graph.parameter @w1 : tensor<8x16xf32> from "m" at 0 bytes 512
  graph.parameter @b1 : tensor<16xf32> from "m" at 512 bytes 64
  graph.parameter @w2 : tensor<16x8xf32> from "m" at 576 bytes 512
  graph.parameter @b2 : tensor<8xf32> from "m" at 1088 bytes 32
  func.func @forward(%x: tensor<4x8xf32>) -> tensor<f32> {
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<8x16xf32>
    %h = graph.matmul %x, %w1 {graph.block = 0 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %b1 = graph.read @b1 {graph.block = 0 : i64} : tensor<16xf32>
    %a = graph.add %h, %b1 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
    %g = graph.gelu %a {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %w2 = graph.read @w2 {graph.block = 1 : i64} : tensor<16x8xf32>
    %y = graph.matmul %g, %w2 {graph.block = 1 : i64} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %b2 = graph.read @b2 {graph.block = 1 : i64} : tensor<8xf32>
    %z = graph.add %y, %b2 {graph.block = 1 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %loss = graph.reduce_sum %z {axes = array<i64: 0, 1>, graph.block = 1 : i64} : (tensor<4x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Queries, keys and values as columns of one product are cut within each of the three; heads follow. What is
// scaled by a constant is scaled by one of its shape.

// CHECK-LABEL: module @fused
// CHECK: graph.parameter @qkv.shard.0 : tensor<8x12xf32> {{.*}}part_runs = #graph.runs<4 every 8 step 4>
// CHECK: graph.parameter @out.shard.0 : tensor<4x8xf32> {{.*}}part_runs = #graph.runs<32 every 64 step 32>
// CHECK: graph.slice {{.*}}sizes = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 4>
// CHECK: graph.constant dense<5.000000e-01> : tensor<2x3x4xf32>
// CHECK: graph.reshape {{.*}}-> tensor<2x3x2x2xf32>
// CHECK: graph.attention {{.*}}tensor<2x2x3x2xf32>
// CHECK: dist.all_reduce


module @fused {
  graph.parameter @qkv : tensor<8x24xf32> from "m" at 0 bytes 768
  graph.parameter @out : tensor<8x8xf32> from "m" at 768 bytes 256
  func.func @forward(%x: tensor<6x8xf32>) -> tensor<f32> {
    %w = graph.read @qkv {graph.block = 0 : i64} : tensor<8x24xf32>
    %0 = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
    %1 = graph.reshape %0 {graph.block = 0 : i64} : (tensor<6x24xf32>) -> tensor<2x3x24xf32>
    %q = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %k = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 8>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %v = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %half = graph.constant dense<5.000000e-01> : tensor<2x3x8xf32>
    %s = graph.mul %q, %half {graph.block = 0 : i64} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %q4 = graph.reshape %s {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %k4 = graph.reshape %k {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %v4 = graph.reshape %v {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %qt = graph.transpose %q4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %kt = graph.transpose %k4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %vt = graph.transpose %v4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %a, %lse = graph.attention %qt, %kt, %vt {scale = 5.000000e-01 : f64, graph.block = 0 : i64} : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> (tensor<2x4x3x2xf32>, tensor<2x4x3xf32>)
    %at = graph.transpose %a {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x4x3x2xf32>) -> tensor<2x3x4x2xf32>
    %2 = graph.reshape %at {graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<6x8xf32>
    %o = graph.read @out {graph.block = 0 : i64} : tensor<8x8xf32>
    %3 = graph.matmul %2, %o {graph.block = 0 : i64} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
    %loss = graph.reduce_sum %3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<6x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
