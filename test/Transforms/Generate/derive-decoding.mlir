// RUN: dsopt-opt %s -split-input-file "-derive-decoding=rows=4 slots=3" | FileCheck %s

// Rows are by themselves; a table of positions is taken at the rows' own; heads that others share are kept once;
// rows are picked before the last product.

// CHECK-LABEL: module @shared
// CHECK: graph.cache @cache.0 : tensor<3x2x16x8xf32>
// CHECK: graph.cache @cache.1 : tensor<3x2x16x8xf32>
// CHECK: func.func @evaluate(%arg0: tensor<1x4xi64> {graph.name = "input_ids"}, %arg1: tensor<4xi64> {graph.name = "dsopt.positions"}, %arg2: tensor<4xi64> {graph.name = "dsopt.slots"}, %arg3: tensor<3xi64> {graph.name = "dsopt.picks"}) -> (tensor<1x3x32xf32> {graph.prediction = "logits", graph.shape = array<i64: 1, 3, 32>})
// CHECK: [[X:%.*]] = graph.gather {{.*}} -> tensor<1x4x32xf32>
// CHECK: [[T:%.*]] = graph.gather %{{.*}}, %arg1 {axis = 1 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x32xf32>, tensor<4xi64>) -> tensor<1x4x32xf32>
// CHECK: graph.add [[X]], [[T]]
// CHECK: [[K:%.*]] = graph.reshape {{.*}} -> tensor<1x2x4x8xf32>
// CHECK: graph.cached_attention %{{.*}}, [[K]], %{{.*}}, %arg2, %arg1 in @cache.0, @cache.1 {graph.block = 0 : i64, graph.phase = #graph.phase<E>, scale = 5.000000e-01 : f64} : (tensor<1x4x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<4xi64>, tensor<4xi64>) -> tensor<1x4x4x8xf32>
// CHECK: [[P:%.*]] = graph.gather %{{.*}}, %arg3 {axis = 0 : i64, {{.*}}} : (tensor<4x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
// CHECK: graph.matmul [[P]], {{.*}} -> tensor<3x32xf32>
module @shared {
  graph.parameter @w : tensor<32x32xf32> from "m" at 0 bytes 4096
  graph.parameter @kv : tensor<32x16xf32> from "m" at 4096 bytes 2048
  graph.parameter @p : tensor<1x16x32xf32> from "m" at 6144 bytes 2048
  func.func @evaluate(%ids: tensor<1x16xi64> {graph.name = "input_ids"}) -> (tensor<1x16x32xf32> {graph.prediction = "logits", graph.shape = array<i64: 1, 16, 32>}) {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : tensor<32x32xf32>
    %kv = graph.read @kv {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : tensor<32x16xf32>
    %p = graph.read @p {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : tensor<1x16x32xf32>
    %e = graph.gather %w, %ids {axis = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<32x32xf32>, tensor<1x16xi64>) -> tensor<1x16x32xf32>
    %x = graph.add %e, %p {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x32xf32>, tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
    %f = graph.reshape %x {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x32xf32>) -> tensor<16x32xf32>
    %q0 = graph.matmul %f, %w {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %q1 = graph.reshape %q0 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x32xf32>) -> tensor<1x16x4x8xf32>
    %q = graph.transpose %q1 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x4x8xf32>) -> tensor<1x4x16x8xf32>
    %k0 = graph.matmul %f, %kv {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
    %k1 = graph.reshape %k0 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x16xf32>) -> tensor<1x16x2x8xf32>
    %k2 = graph.transpose %k1 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x2x8xf32>) -> tensor<1x2x16x8xf32>
    %k3 = graph.reshape %k2 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x2x16x8xf32>) -> tensor<1x2x1x16x8xf32>
    %k4 = graph.expand %k3 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x2x1x16x8xf32>) -> tensor<1x2x2x16x8xf32>
    %k = graph.reshape %k4 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x2x2x16x8xf32>) -> tensor<1x4x16x8xf32>
    %r, %lse = graph.attention %q, %k, %k {causal, scale = 0.5 : f64, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>) -> (tensor<1x4x16x8xf32>, tensor<1x4x16xf32>)
    %o0 = graph.transpose %r {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x4x16x8xf32>) -> tensor<1x16x4x8xf32>
    %o = graph.reshape %o0 {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<1x16x4x8xf32>) -> tensor<16x32xf32>
    %h = graph.matmul %o, %w {transpose_b, graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %logits = graph.reshape %h {graph.block = 0 : i64, graph.phase = #graph.phase<E>} : (tensor<16x32xf32>) -> tensor<1x16x32xf32>
    return %logits : tensor<1x16x32xf32>
  }
}

// -----

// Of a batch whose sequences are alike one is taken; a function of positions is computed of the rows' own, with
// what it begins with further on; of a mask the rows' own rows.

// CHECK-LABEL: module @masked
// CHECK: graph.cache @cache.0 : tensor<3x1x4x2xf32>
// CHECK: func.func @evaluate(%arg0: tensor<1x4xi64>
// CHECK: [[N:%.*]] = graph.add %arg1, {{.*}} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
// CHECK: [[G:%.*]] = graph.gather {{.*}}, [[N]] {axis = 0 : i64} : (tensor<5x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
// CHECK: [[S:%.*]] = graph.slice [[G]]
// CHECK: graph.sin [[S]] : (tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: [[M:%.*]] = graph.gather {{.*}}, %arg1 {axis = 2 : i64} : (tensor<1x1x4x4xf32>, tensor<4xi64>) -> tensor<1x1x4x4xf32>
// CHECK: graph.cached_attention {{.*}}, %arg2, %arg1, [[M]] in
module @masked {
  graph.parameter @w : tensor<2x2xf32> from "m" at 0 bytes 16
  graph.parameter @t : tensor<5x2xf32> from "m" at 16 bytes 40
  func.func @evaluate(%ids: tensor<2x4xi64> {graph.name = "input_ids"}) -> (tensor<2x4x2xf32> {graph.prediction = "logits", graph.shape = array<i64: 2, 4, 2>}) {
    %w = graph.read @w : tensor<2x2xf32>
    %t = graph.read @t : tensor<5x2xf32>
    %late = graph.slice %t {sizes = array<i64: 4, 2>, starts = array<i64: 1, 0>, steps = array<i64: 1, 1>} : (tensor<5x2xf32>) -> tensor<4x2xf32>
    %p = graph.sin %late : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %e = graph.gather %w, %ids {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
    %b = graph.constant dense<[[[1.0, 2.0]], [[1.0, 2.0]]]> : tensor<2x1x2xf32>
    %s = graph.mul %e, %b : (tensor<2x4x2xf32>, tensor<2x1x2xf32>) -> tensor<2x4x2xf32>
    %x = graph.add %s, %p : (tensor<2x4x2xf32>, tensor<4x2xf32>) -> tensor<2x4x2xf32>
    %q = graph.reshape %x : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
    %mask = graph.constant dense<[[[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0xFF800000, 0.0, 0.0, 0xFF800000], [0xFF800000, 0xFF800000, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
    %r, %lse = graph.attention %q, %q, %q, %mask {scale = 0.5 : f64} : (tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<1x1x4x4xf32>) -> (tensor<2x1x4x2xf32>, tensor<2x1x4xf32>)
    %logits = graph.reshape %r : (tensor<2x1x4x2xf32>) -> tensor<2x4x2xf32>
    return %logits : tensor<2x4x2xf32>
  }
}
