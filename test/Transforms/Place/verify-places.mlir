// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-verify-places=ranks=2" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-verify-places=ranks=1" > /dev/null

// Columns and rows, with both sums: as place-values and build-backward leave them.
// CHECK-LABEL: module @right
module @right {
  graph.parameter @w : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @w.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
  graph.parameter @b : tensor<4xf32> from "m" at 128 bytes 16
  graph.state @w.grad : tensor<4x4xf32> gradient of @w.shard.0 block 0
  graph.state @b.grad : tensor<4xf32> gradient of @b block 0
  func.func @micro_batch(%x: tensor<2x4xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) -> tensor<f32> {
    %xs = dist.shared %x over [tp] : tensor<2x4xf32> 1
    %w = graph.read @w.shard.0 : tensor<4x4xf32>
    %h = graph.matmul %xs, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %y = dist.all_reduce %h over [tp] : tensor<2x4xf32>
    %b = graph.reduce_sum %y {axes = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    %g = graph.matmul %xs, %h {transpose_a} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    graph.accumulate @w.grad, %g : tensor<4x4xf32>
    graph.accumulate @b.grad, %b : tensor<4xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  graph.parameter @w : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @w.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
  func.func @micro_batch(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = graph.read @w.shard.0 : tensor<4x4xf32>
    %h = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = graph.reduce_sum %h {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    // expected-error@+1 {{returns what differs between ranks along tp, expected what all of them have}}
    return %loss : tensor<f32>
  }
}

// -----

module {
  graph.parameter @w : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @w.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
  graph.parameter @b : tensor<4xf32> from "m" at 128 bytes 16
  graph.state @b.grad : tensor<4xf32> gradient of @b block 0
  func.func @micro_batch(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = graph.read @w.shard.0 : tensor<4x4xf32>
    %h = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = graph.reduce_sum %h {axes = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    // expected-error@+1 {{adds to the gradient of whole parameter @b what differs between ranks along tp}}
    graph.accumulate @b.grad, %b : tensor<4xf32>
    %loss = graph.reduce_sum %x {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  func.func @micro_batch(%x: tensor<2x4xf32>) -> tensor<f32> {
    // expected-error@+1 {{adds what is equal on all ranks along tp, expected pieces of a sum}}
    %y = dist.all_reduce %x over [tp] : tensor<2x4xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Dropout of a shard differs, whatever it is of.
module {
  func.func @evaluate(%x: tensor<2x4xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) -> tensor<f32> {
    %d = graph.dropout %x, %k, %s {ratio = 0.5 : f64, runs = #graph.runs<4 every 8 step 4>} : (tensor<2x4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    // expected-error@+1 {{hands to all shards what differs between ranks along tp}}
    %y = dist.shared %d over [tp] : tensor<2x4xf32> 1
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What contributes to a shard's running statistic is the shard's own; what is taken by the rank's coordinate differs.
module {
  graph.parameter @m : tensor<4xf32> from "m" at 0 bytes 16 frozen {statistic}
  graph.parameter @m.shard.0 : tensor<2xf32> from "m" at 0 bytes 8 frozen {statistic, part_of = @m, part_begin = 0 : i64, part_runs = #graph.runs<2 every 4 step 2>}
  func.func @micro_batch(%x: tensor<2x4xf32>, %y: tensor<2xf32>, %k: tensor<7xi32> {graph.context, graph.name = "context"})
      -> (tensor<f32>, tensor<2xf32> {graph.statistic = @m.shard.0, graph.momentum = 0.9 : f64}) {
    %loss = graph.reduce_sum %x {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    // expected-error@+1 {{returns for @m.shard.0, of which ranks along tp have shards, what is equal on all of them}}
    return %loss, %y : tensor<f32>, tensor<2xf32>
  }
}

// -----

module {
  func.func @micro_batch(%x: tensor<2x4xf32>, %k: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %rank = graph.slice %k {starts = array<i64: 5>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<7xi32>) -> tensor<1xi32>
    %row = graph.gather %x, %rank {axis = 0 : i64} : (tensor<2x4xf32>, tensor<1xi32>) -> tensor<1x4xf32>
    %loss = graph.reduce_sum %row {axes = array<i64: 0, 1>} : (tensor<1x4xf32>) -> tensor<f32>
    // expected-error@+1 {{returns what differs between ranks along tp}}
    return %loss : tensor<f32>
  }
}

// -----

// Rows: each rank has others, and so a piece of the gradient of what they read.
module @rows {
  graph.parameter @b : tensor<16xf32> from "m" at 0 bytes 64
  graph.state @b.grad : tensor<16xf32> gradient of @b block 0
  func.func @micro_batch(%x: tensor<8x16xf32>, %k: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %n = graph.slice %k {starts = array<i64: 5>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<7xi32>) -> tensor<1xi32>
    %c = graph.cast %n : (tensor<1xi32>) -> tensor<1xf32>
    %p = graph.mul %x, %c : (tensor<8x16xf32>, tensor<1xf32>) -> tensor<8x16xf32>
    %y = dist.reduce_scatter %p over [tp] : tensor<8x16xf32> to tensor<4x16xf32>
    %w = dist.all_gather %y over [tp] : tensor<4x16xf32> to tensor<8x16xf32>
    %g = graph.reduce_sum %w {axes = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
    graph.accumulate @b.grad, %g : tensor<16xf32>
    %b = graph.reduce_sum %y {axes = array<i64: 0>} : (tensor<4x16xf32>) -> tensor<16xf32>
    // expected-error@+1 {{adds to the gradient of whole parameter @b what differs between ranks along tp, expected the sum of their pieces (dist.all_reduce)}}
    graph.accumulate @b.grad, %b : tensor<16xf32>
    %loss = graph.reduce_sum %w {axes = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is gathered has to differ.
module @equal {
  func.func @micro_batch(%x: tensor<8x16xf32>) -> tensor<f32> {
    // expected-error@+1 {{exchanges what is equal on all ranks along tp, expected what differs}}
    %w = dist.all_gather %x over [tp] : tensor<8x16xf32> to tensor<16x16xf32>
    %loss = graph.reduce_sum %w {axes = array<i64: 0, 1>} : (tensor<16x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
