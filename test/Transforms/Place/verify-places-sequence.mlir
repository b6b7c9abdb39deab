// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-verify-places" | FileCheck %s

// Rows of a rank, what is gathered of them, and a sum over all: gradients of parameters may differ, since buckets
// add them; what a condition of this rank's place does not change is alike.
// CHECK-LABEL: module @right
module @right attributes {dsopt.options = {sp = 2 : i64}} {
  graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
  graph.state @w.grad : tensor<8xf32> gradient of @w block 0
  func.func @micro_batch(%x: tensor<16x8xf32>, %c: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %r = graph.slice %c {starts = array<i64: 6>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<7xi32>) -> tensor<1xi32>
    %z = graph.constant dense<0> : tensor<i32>
    %first = graph.equal %r, %z : (tensor<1xi32>, tensor<i32>) -> tensor<1xi1>
    %w = graph.read @w : tensor<8xf32>
    %s = graph.stop_gradient %w : (tensor<8xf32>) -> tensor<8xf32>
    %once = graph.where %first, %w, %s : (tensor<1xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %own = graph.gather %x, %r {axis = 0 : i64} : (tensor<16x8xf32>, tensor<1xi32>) -> tensor<1x8xf32>
    %all = dist.all_gather %own over [sp] : tensor<1x8xf32> to tensor<2x8xf32>
    graph.accumulate @w.grad, %once : tensor<8xf32>
    %y = graph.mul %all, %once : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {sp = 2 : i64}} {
  func.func @micro_batch(%q: tensor<1x1x4x2xf32>, %k: tensor<1x1x8x2xf32>) -> tensor<f32> {
    %a, %l = graph.attention %q, %k, %k {scale = 0.5 : f64, causal, begin = 0 : i64, step = 4 : i64} : (tensor<1x1x4x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>)
    %loss = graph.reduce_sum %a {axes = array<i64: 0, 1, 2, 3>} : (tensor<1x1x4x2xf32>) -> tensor<f32>
    // expected-error@+1 {{returns what differs between ranks along sp, expected what all of them have}}
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dsopt.options = {sp = 2 : i64}} {
  func.func @micro_batch(%x: tensor<4x8xf32>) -> tensor<f32> {
    // expected-error@+1 {{exchanges what is equal on all ranks along sp, expected what differs}}
    %y = dist.all_gather %x over [sp] : tensor<4x8xf32> to tensor<8x8xf32>
    %loss = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<8x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Slices of a sum are a rank's own again.
module attributes {dsopt.options = {sp = 2 : i64}} {
  func.func @micro_batch(%x: tensor<16x8xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) -> tensor<f32> {
    %d = graph.dropout %x, %k, %s {ratio = 0.5 : f64, time_runs = #graph.runs<8 every 16 step 8>} : (tensor<16x8xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<16x8xf32>
    %y = dist.reduce_scatter %d over [sp] : tensor<16x8xf32> to tensor<8x8xf32>
    // expected-error@+1 {{hands to all shards what differs between ranks along sp}}
    %z = dist.shared %y over [sp] : tensor<8x8xf32> 1
    %loss = graph.reduce_sum %z {axes = array<i64: 0, 1>} : (tensor<8x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
