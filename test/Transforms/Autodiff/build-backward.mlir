// RUN: dsopt-opt %s -split-input-file -build-backward | FileCheck %s

// The seed is the loss's gradient. Nothing comes before block 0: all is W.

// CHECK-LABEL: module @seed
// CHECK: graph.state @w.grad.0 : tensor<4x2xf32> gradient of @w block 0
module @seed {
  graph.parameter @w : tensor<4x2xf32> from "m" at 0 bytes 32
  // CHECK: func @micro_batch(%[[X:.*]]: tensor<8x4xf32> {graph.name = "x"}, %[[SEED:.*]]: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32>
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}) -> tensor<f32> {
    // CHECK: graph.read @w {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
    // CHECK: graph.matmul {{.*}}graph.phase = #graph.phase<F>
    // CHECK: %[[LOSS:.*]] = graph.reduce_sum {{.*}}graph.phase = #graph.phase<F>
    // CHECK: %[[ONE:.*]] = graph.reshape %[[SEED]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: %[[DY:.*]] = graph.expand %[[ONE]] {{.*}}graph.phase = #graph.phase<W>
    // CHECK: %[[DW:.*]] = graph.matmul %[[X]], %[[DY]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>, transpose_a}
    // CHECK: graph.accumulate @w.grad.0, %[[DW]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: return %[[LOSS]]
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x2xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<8x2xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Block 1 yields the gradient of its input in B, with a read of its own, and that
// of its weight in W. A tied parameter has one accumulator a block.

// CHECK-LABEL: module @phases
// CHECK: graph.state @w.grad.0 : tensor<4x4xf32> gradient of @w block 0
// CHECK: graph.state @w.grad.1 : tensor<4x4xf32> gradient of @w block 1
module @phases {
  graph.parameter @w : tensor<4x4xf32> from "m" at 0 bytes 64
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
    // CHECK: %[[H:.*]] = graph.matmul {{.*}}graph.block = 0
    // CHECK: %[[DY:.*]] = graph.expand {{.*}}graph.block = 1 : i64, graph.phase = #graph.phase<B>
    // CHECK: %[[W:.*]] = graph.read @w {graph.block = 1 : i64, graph.phase = #graph.phase<B>}
    // CHECK: %[[DH:.*]] = graph.matmul %[[DY]], %[[W]] {graph.block = 1 : i64, graph.phase = #graph.phase<B>, transpose_b}
    // CHECK: %[[DW:.*]] = graph.matmul %[[H]], %[[DY]] {graph.block = 1 : i64, graph.phase = #graph.phase<W>, transpose_a}
    // CHECK: graph.accumulate @w.grad.1, %[[DW]] {graph.block = 1 : i64, graph.phase = #graph.phase<W>}
    // CHECK: graph.matmul %{{.*}}, %[[DH]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>, transpose_a}
    // CHECK: graph.accumulate @w.grad.0
    %w0 = graph.read @w {graph.block = 0 : i64} : tensor<4x4xf32>
    %h = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %w1 = graph.read @w {graph.block = 1 : i64} : tensor<4x4xf32>
    %y = graph.matmul %h, %w1 {graph.block = 1 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 1 : i64} : (tensor<8x4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// %h lives across block 1: block 2 hands its part on, block 1 adds its own to it.

// CHECK-LABEL: module @skip
module @skip {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @b : tensor<4xf32> from "m" at 16 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: %[[D2:.*]] = graph.expand {{.*}}graph.block = 2 : i64, graph.phase = #graph.phase<B>
    // CHECK: %[[D1:.*]] = graph.mul %[[D2]], {{.*}}graph.block = 1 : i64, graph.phase = #graph.phase<B>
    // CHECK: %[[D:.*]] = graph.add %[[D2]], %[[D1]] {graph.block = 1 : i64, graph.phase = #graph.phase<B>}
    // CHECK: graph.mul %[[D]], %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %h = graph.mul %x, %w {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = graph.read @b {graph.block = 1 : i64} : tensor<4xf32>
    %k = graph.mul %h, %b {graph.block = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = graph.add %h, %k {graph.block = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %s {axes = array<i64: 0>, graph.block = 2 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Uses inside a block are added in the graph's order.

// CHECK-LABEL: module @uses
module @uses {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<f32> {
    // CHECK: %[[Z:.*]] = graph.mul %{{.*}}, %arg2 {{.*}}graph.phase = #graph.phase<W>
    // CHECK: %[[Y:.*]] = graph.mul %{{.*}}, %arg1 {{.*}}graph.phase = #graph.phase<W>
    // CHECK: %[[X:.*]] = graph.mul %{{.*}}, %arg0 {{.*}}graph.phase = #graph.phase<W>
    // CHECK: %[[XY:.*]] = graph.add %[[X]], %[[Y]]
    // CHECK: %[[XYZ:.*]] = graph.add %[[XY]], %[[Z]]
    // CHECK: graph.accumulate @w.grad.0, %[[XYZ]]
    %w0 = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %a = graph.mul %x, %w0 {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w1 = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %b = graph.mul %y, %w1 {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w2 = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %c = graph.mul %z, %w2 {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %ab = graph.add %a, %b {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %abc = graph.add %ab, %c {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %abc {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A mask is made anew in backward; frozen parameters get no gradient; what only
// they need is not built.

// CHECK-LABEL: module @floating
// CHECK-NOT: graph.state @f
module @floating {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @f : tensor<4xf32> from "m" at 16 bytes 16 frozen {why = "-freeze"}
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: graph.where {{.*}}graph.phase = #graph.phase<F>
    // CHECK: graph.reduce_sum {{.*}}graph.phase = #graph.phase<F>
    // CHECK-NOT: graph.log
    // CHECK: %[[ZERO:.*]] = graph.constant dense<0.000000e+00> : tensor<f32> {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: %[[MASK:.*]] = graph.less %arg0, %[[ZERO]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: graph.where %[[MASK]]
    // CHECK-NOT: graph.accumulate @f
    %zero = graph.constant dense<0.0> : tensor<f32> {graph.block = 0 : i64}
    %mask = graph.less %x, %zero {graph.block = 0 : i64} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %f = graph.read @f {graph.block = 0 : i64} : tensor<4xf32>
    %g = graph.log %f {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.where %mask, %w, %g {graph.block = 0 : i64} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A bool is made anew from what backward reads anyway, the square.

// CHECK-LABEL: module @predicate
module @predicate {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: %[[SQUARE:.*]] = graph.mul {{.*}}graph.phase = #graph.phase<F>
    // CHECK: graph.isnan %[[SQUARE]] {{.*}}graph.phase = #graph.phase<F>
    // CHECK: %[[NAN:.*]] = graph.isnan %[[SQUARE]] {{.*}}graph.phase = #graph.phase<W>
    // CHECK: graph.where %[[NAN]], {{.*}}graph.phase = #graph.phase<W>
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %s = graph.mul %w, %x {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n = graph.isnan %s {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xi1>
    %e = graph.mul %s, %s {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %y = graph.where %n, %x, %e {graph.block = 0 : i64} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Accumulators have 32 bits, unless the option says otherwise.

// CHECK-LABEL: module @narrow
// CHECK: graph.state @w.grad.0 : tensor<4xf32>
// CHECK: %[[G:.*]] = graph.cast {{.*}}graph.phase = #graph.phase<W>} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: graph.accumulate @w.grad.0, %[[G]] {{.*}} : tensor<4xf32>
module @narrow {
  graph.parameter @w : tensor<4xbf16> from "m" at 0 bytes 8
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xbf16>
    %c = graph.neg %w {graph.block = 0 : i64} : (tensor<4xbf16>) -> tensor<4xbf16>
    %y = graph.cast %c {graph.block = 0 : i64} : (tensor<4xbf16>) -> tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// CHECK-LABEL: module @param attributes
// CHECK: graph.state @w.grad.0 : tensor<4xbf16>
module @param attributes {dsopt.options = {gradient_type = "param"}} {
  graph.parameter @w : tensor<4xbf16> from "m" at 0 bytes 8
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xbf16>
    %y = graph.cast %w {graph.block = 0 : i64} : (tensor<4xbf16>) -> tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Attention's gradient is one routine, which keeps the result and the rows' lse; a mask has none.

// CHECK-LABEL: func.func @micro_batch
graph.parameter @q : tensor<1x2x3x4xf32> from "m" at 0 bytes 96
func.func @forward(%k: tensor<1x2x5x4xf32>, %mask: tensor<3x5xf32>) -> tensor<f32> {
  // CHECK: %[[Q:.*]] = graph.read @q
  // CHECK: %[[R:.*]], %[[LSE:.*]] = graph.attention %[[Q]], %arg0, %arg0, %arg1 {graph.block = 0 : i64, graph.phase = #graph.phase<F>, scale = 5.000000e-01 : f64}
  // CHECK: %[[D:.*]] = graph.expand
  // CHECK: %[[DQ:.*]], %{{.*}}, %{{.*}} = graph.attention_grad %{{.*}}, %arg0, %arg0, %arg1, %[[R]], %[[LSE]], %[[D]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>, scale = 5.000000e-01 : f64}
  // CHECK: graph.accumulate @q.grad.0, %[[DQ]]
  %q = graph.read @q {graph.block = 0 : i64} : tensor<1x2x3x4xf32>
  %r, %lse = graph.attention %q, %k, %k, %mask {graph.block = 0 : i64, scale = 0.5 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<3x5xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %l = graph.reduce_sum %r {axes = array<i64: 0, 1, 2, 3>, graph.block = 0 : i64} : (tensor<1x2x3x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// The gradient of dropout drops the same elements; nothing is saved for it.

// CHECK-LABEL: module @dropout
module @dropout {
  graph.parameter @w : tensor<4x2xf32> from "m" at 0 bytes 32
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %k: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    // CHECK: graph.dropout %{{.*}}, %arg1, %[[S:.*]] {graph.block = 0 : i64, graph.phase = #graph.phase<F>, ratio = 1.000000e-01 : f64}
    // CHECK: %[[T:.*]] = graph.constant {{.*}}dense<[0, -1]>
    // CHECK: %[[DY:.*]] = graph.dropout %{{.*}}, %arg1, %[[T]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>, ratio = 1.000000e-01 : f64}
    // CHECK: graph.matmul %arg0, %[[DY]]
    %s = graph.constant dense<[0, -1]> : tensor<2xi32> {graph.block = 0 : i64}
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4x2xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %d = graph.dropout %y, %k, %s {graph.block = 0 : i64, ratio = 0.1 : f64} : (tensor<8x2xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<8x2xf32>
    %l = graph.reduce_sum %d {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<8x2xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A gradient that is stopped goes no further: not to @v, which only stopped values read. What has no gradient
// may stand before it.

// CHECK-LABEL: module @stop
// CHECK: graph.parameter @v {{.*}} frozen {{.*}}why = "unused"
// CHECK-NOT: of @v
module @stop {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @v : tensor<4xf32> from "m" at 16 bytes 16
  func.func @forward(%i: tensor<4xi64>) -> tensor<f32> {
    // CHECK: %[[STOP:.*]] = graph.stop_gradient
    // CHECK: %[[G:.*]] = graph.expand {{.*}}graph.phase = #graph.phase<W>
    // CHECK: %[[DW:.*]] = graph.mul %[[G]], %[[STOP]] {{.*}}graph.phase = #graph.phase<W>
    // CHECK-NEXT: graph.accumulate @w.grad.0, %[[DW]]
    // CHECK-NEXT: return
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %v = graph.read @v {graph.block = 0 : i64} : tensor<4xf32>
    %z = graph.mul %w, %v {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = graph.stop_gradient %z {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %o = graph.gather_grad %s, %i {axis = 0, graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
    %y = graph.mul %w, %s {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A backward that is given stands in for the operations': @w gets the gradient times what was saved, @v none.
// A result that nothing reads has a gradient of zeros.

// CHECK-LABEL: module @given
module @given {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: graph.custom_gradient
    // CHECK: %[[G:.*]] = graph.expand %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: %[[ZERO:.*]] = graph.expand %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: %[[A:.*]] = graph.mul %[[G]], %arg0 {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: %[[DW:.*]] = graph.add %[[A]], %[[ZERO]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK-NEXT: graph.accumulate @w.grad.0, %[[DW]]
    // CHECK-NEXT: return
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %v = graph.neg %w {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %y, %unused = graph.custom_gradient 0 of(%w : tensor<4xf32>) is(%v, %v : tensor<4xf32>, tensor<4xf32>) saved(%x : tensor<4xf32>) {
    ^bb0(%s: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>):
      %a = graph.mul %g, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %d = graph.add %a, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %d : tensor<4xf32>
    } {graph.block = 0 : i64} -> tensor<4xf32>, tensor<4xf32>
    %l = graph.reduce_sum %y {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// The name of an accumulator where a use of a tied parameter is stopped may be a parameter's.

// CHECK-LABEL: module @stopped_use_taken
// CHECK: graph.state @"w.grad.0~" : tensor<4xf32> gradient of @w block 0
// CHECK: graph.state @w.grad.1 : tensor<4xf32> gradient of @w block 1
module @stopped_use_taken {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @w.grad.0 : tensor<4xf32> from "m" at 16 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: graph.accumulate @"w.grad.0~", %{{.*}} {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    %w0 = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %s = graph.stop_gradient %w0 {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.mul %s, %x {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w1 = graph.read @w {graph.block = 1 : i64} : tensor<4xf32>
    %v = graph.read @w.grad.0 {graph.block = 1 : i64} : tensor<4xf32>
    %z = graph.mul %w1, %y {graph.block = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %u = graph.mul %z, %v {graph.block = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %u {axes = array<i64: 0>, graph.block = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A block whose use of a tied parameter is stopped has an accumulator all the same.

// CHECK-LABEL: module @stopped_use {
// CHECK: graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
// CHECK: graph.state @w.grad.1 : tensor<4xf32> gradient of @w block 1
module @stopped_use {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
    // CHECK: graph.accumulate @w.grad.1
    // CHECK: %[[ZERO:.*]] = graph.constant dense<0.000000e+00> : tensor<4xf32> {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    // CHECK: graph.accumulate @w.grad.0, %[[ZERO]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
    %w0 = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %s = graph.stop_gradient %w0 {graph.block = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.mul %s, %x {graph.block = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w1 = graph.read @w {graph.block = 1 : i64} : tensor<4xf32>
    %z = graph.mul %w1, %y {graph.block = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.reduce_sum %z {axes = array<i64: 0>, graph.block = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Of rows that shards read each rank has a piece of the gradient: a slice of the sum is its own. Where all do
// the same with them it has the whole one, of which it takes its slice. From then on the gathers are one.

// CHECK-LABEL: module @gathered
// CHECK: dist.all_gather {{.*}} over [tp] {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<4x64xf32>
// CHECK: dist.all_gather {{.*}} over [tp] {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : tensor<4x64xf32>
// CHECK: [[K:%.*]] = dist.shared {{.*}} over [] {graph.block = 0 : i64, graph.phase = #graph.phase<W>} : tensor<8x64xf32> 1
// CHECK: [[O:%.*]] = graph.gather [[K]], {{.*}}-> tensor<4x64xf32>
// CHECK: [[A:%.*]] = dist.shared [[O]] over []
// CHECK: [[S:%.*]] = dist.reduce_scatter {{.*}} over [tp] {{.*}} : tensor<8x64xf32> to tensor<4x64xf32>
// CHECK: graph.add [[A]], [[S]]
module @gathered {
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  func.func @forward(%p: tensor<4x64xf32>, %context: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<64xf32>
    %v = dist.shared %w over [tp] {graph.block = 0 : i64} : tensor<64xf32> 1
    %y = graph.mul %p, %v {graph.block = 0 : i64} : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
    %a = dist.all_gather %y over [tp] {graph.block = 0 : i64} : tensor<4x64xf32> to tensor<8x64xf32>
    %b = dist.all_gather %y over [tp] {alike, graph.block = 0 : i64} : tensor<4x64xf32> to tensor<8x64xf32>
    %c = graph.mul %a, %b {graph.block = 0 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %l = graph.reduce_sum %c {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<8x64xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
