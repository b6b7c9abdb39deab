// RUN: dsopt-opt %s -pass-pipeline="builtin.module(func.func(sharding-propagation{traversal=forward-backward}))" | FileCheck %s

// Upstream's propagation reads the operations' loops and maps.

module {
shard.grid @grid(shape = 2x4)

// Rows on one axis, the hidden dimension on the other; the second product sums over it.

// CHECK-LABEL: func.func @perceptron
func.func @perceptron(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>, %v: tensor<32x16xf32>, %s: tensor<16xf32>) -> tensor<8x16xf32> {
  // The scale of what is normalized is whole.
  // CHECK: %[[S:.*]] = shard.sharding @grid split_axes = {{\[\[}}]]
  // CHECK: shard.shard %arg4 to %[[S]] annotate_for_users
  // CHECK: %[[H:.*]] = graph.matmul
  // CHECK: %[[HS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [1]]
  // CHECK: shard.shard %[[H]] to %[[HS]]
  // CHECK: %[[B:.*]] = shard.sharding @grid split_axes = {{\[\[}}1]]
  // CHECK: shard.shard %arg2 to %[[B]] annotate_for_users
  // CHECK: graph.gelu
  // CHECK: %[[V:.*]] = shard.sharding @grid split_axes = {{\[\[}}1]]
  // CHECK: shard.shard %arg3 to %[[V]] annotate_for_users
  // CHECK: %[[Y:.*]] = graph.matmul
  // CHECK: %[[YS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0]]
  // CHECK: shard.shard %[[Y]] to %[[YS]]
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %columns = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding
  %xs = shard.shard %x to %rows : tensor<8x16xf32>
  %xu = shard.shard %xs to %rows annotate_for_users : tensor<8x16xf32>
  %n, %rstd = graph.rms_norm %xu, %s {axis = 1 : i64, epsilon = 1.0e-6 : f64} : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x1xf32>)
  %ws = shard.shard %w to %columns : tensor<16x32xf32>
  %wu = shard.shard %ws to %columns annotate_for_users : tensor<16x32xf32>
  %h = graph.matmul %n, %wu : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %a = graph.add %h, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %g = graph.gelu %a : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = graph.matmul %g, %v : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// The batch goes through a lookup, merged and split dimensions and attention, heads on the other axis.

// CHECK-LABEL: func.func @attention
func.func @attention(%ids: tensor<4x6xi64>, %table: tensor<50x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[E:.*]] = graph.gather
  // CHECK: %[[ES:.*]] = shard.sharding @grid split_axes = {{\[\[}}0]]
  // CHECK: shard.shard %[[E]] to %[[ES]]
  // CHECK: %[[Q:.*]] = graph.matmul {{.*}} {transpose_b}
  // CHECK: %[[QS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [1]]
  // CHECK: shard.shard %[[Q]] to %[[QS]]
  // CHECK: %[[T:.*]] = graph.transpose
  // CHECK: %[[TS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [1]]
  // CHECK: shard.shard %[[T]] to %[[TS]]
  // CHECK: graph.attention
  // CHECK: %[[M:.*]] = graph.reduce_max
  // CHECK: %[[MS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0]]
  // CHECK: shard.shard %[[M]] to %[[MS]]
  %batch = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %heads = shard.sharding @grid split_axes = [[1]] : !shard.sharding
  %is = shard.shard %ids to %batch : tensor<4x6xi64>
  %iu = shard.shard %is to %batch annotate_for_users : tensor<4x6xi64>
  %e = graph.gather %table, %iu {axis = 0 : i64} : (tensor<50x16xf32>, tensor<4x6xi64>) -> tensor<4x6x16xf32>
  %f = graph.reshape %e : (tensor<4x6x16xf32>) -> tensor<24x16xf32>
  %ws = shard.shard %w to %heads : tensor<16x16xf32>
  %wu = shard.shard %ws to %heads annotate_for_users : tensor<16x16xf32>
  %p = graph.matmul %f, %wu {transpose_b} : (tensor<24x16xf32>, tensor<16x16xf32>) -> tensor<24x16xf32>
  %s = graph.reshape %p : (tensor<24x16xf32>) -> tensor<4x6x4x4xf32>
  %q = graph.transpose %s {perm = array<i64: 0, 2, 1, 3>} : (tensor<4x6x4x4xf32>) -> tensor<4x4x6x4xf32>
  %a, %lse = graph.attention %q, %q, %q {causal, scale = 0.5 : f64} : (tensor<4x4x6x4xf32>, tensor<4x4x6x4xf32>, tensor<4x4x6x4xf32>) -> (tensor<4x4x6x4xf32>, tensor<4x4x6xf32>)
  %m = graph.reduce_max %a {axes = array<i64: 1, 3>} : (tensor<4x4x6x4xf32>) -> tensor<4x6xf32>
  return %m : tensor<4x6xf32>
}
// Batch and channels go through windows and their sums, what windows move over does not; a pad keeps what it does not pad.

// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
  // CHECK: %[[P:.*]] = graph.pad
  // CHECK: %[[PS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [], [1]]
  // CHECK: shard.shard %[[P]] to %[[PS]]
  // CHECK: %[[W:.*]] = graph.windows
  // CHECK: %[[WS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [], [], [1]]
  // CHECK: shard.shard %[[W]] to %[[WS]]
  // CHECK: %[[S:.*]] = graph.windows_sum
  // CHECK: %[[SS:.*]] = shard.sharding @grid split_axes = {{\[\[}}0], [], [1]]
  // CHECK: shard.shard %[[S]] to %[[SS]]
  %both = shard.sharding @grid split_axes = [[0], [], [1]] : !shard.sharding
  %xs = shard.shard %x to %both : tensor<4x6x8xf32>
  %xu = shard.shard %xs to %both annotate_for_users : tensor<4x6x8xf32>
  %p = graph.pad %xu {lows = array<i64: 0, 1, 0>, highs = array<i64: 0, -1, 0>, value = 0.0 : f32} : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %w = graph.windows %p {axis = 1 : i64, counts = array<i64: 6>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<4x6x8xf32>) -> tensor<4x6x3x8xf32>
  %s = graph.windows_sum %w {axis = 1 : i64, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<4x6x3x8xf32>) -> tensor<4x6x8xf32>
  return %s : tensor<4x6x8xf32>
}
}
