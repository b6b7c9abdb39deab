// RUN: dsopt-opt %s -split-input-file -recompute=mode=full | FileCheck %s

// A view has the bytes of what it views: that is what is kept, whatever backward reads, and backward views it anew.
module attributes {dsopt.options = {dp = 1 : i64}} {
  graph.parameter @u : tensor<8x16xf32> from "m" at 256 bytes 512
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  graph.state @u.grad.0 : tensor<8x16xf32> gradient of @u block 0
  graph.state @w.grad.0 : tensor<8x8xf32> gradient of @w block 1
  dist.bucket @b0 : f32 of [0] [#dist.range<@u, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0
  dist.bucket @b1 : f32 of [1] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0

  // Of an argument: nothing is returned for backward.
  // CHECK-LABEL: func.func private @block0.F
  // CHECK: return %{{[0-9]+}} : tensor<8x8xf32>
  func.func private @block0.F(%x: tensor<4x16xf32>) -> (tensor<8x8xf32>, tensor<8x16xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @u : tensor<8x16xf32>
    %r = graph.reshape %x : (tensor<4x16xf32>) -> tensor<8x8xf32>
    %a = graph.matmul %r, %w : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = graph.matmul %a, %w {transpose_b} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
    return %y, %a : tensor<8x8xf32>, tensor<8x16xf32>
  }
  // CHECK-LABEL: func.func private @block0.W
  // CHECK-SAME: (%{{.*}}: tensor<8x8xf32>, %[[X:.*]]: tensor<4x16xf32>)
  // CHECK: %[[R:.*]] = graph.reshape %[[X]]
  // CHECK: %[[W:.*]] = graph.read @u
  // CHECK: graph.matmul %[[R]], %[[W]]
  func.func private @block0.W(%dy: tensor<8x8xf32>, %a: tensor<8x16xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    %dw = graph.matmul %dy, %a {transpose_a} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    graph.accumulate @u.grad.0, %dw : tensor<8x16xf32>
    return
  }
  // CHECK-LABEL: func.func private @block1.F
  // CHECK: %[[Q:.*]] = graph.matmul
  // CHECK: %[[V:.*]] = graph.reshape %[[Q]]
  // Of what another block's backward reads under another shape: one of them is there.
  // CHECK: return %{{.*}}, %[[V]] : tensor<8x8xf32>, tensor<4x16xf32>
  func.func private @block1.F(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x16xf32>, tensor<8x8xf32>) attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w : tensor<8x8xf32>
    %q = graph.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %v = graph.reshape %q : (tensor<8x8xf32>) -> tensor<4x16xf32>
    %e = graph.exp %q : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %y = graph.matmul %e, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %y, %v, %e : tensor<8x8xf32>, tensor<4x16xf32>, tensor<8x8xf32>
  }
  // CHECK-LABEL: func.func private @block1.W
  // CHECK-SAME: (%{{.*}}: tensor<8x8xf32>, %[[V:.*]]: tensor<4x16xf32>)
  // CHECK: %[[Q:.*]] = graph.reshape %[[V]] : (tensor<4x16xf32>) -> tensor<8x8xf32>
  // CHECK: graph.exp %[[Q]]
  func.func private @block1.W(%dy: tensor<8x8xf32>, %e: tensor<8x8xf32>) attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<W>} {
    %dw = graph.matmul %e, %dy {transpose_a} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    graph.accumulate @w.grad.0, %dw : tensor<8x8xf32>
    return
  }
  func.func private @block2.W(%dy: tensor<8x8xf32>, %v: tensor<4x16xf32>) attributes {dist.stage = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<W>} {
    %r = graph.reshape %v : (tensor<4x16xf32>) -> tensor<8x8xf32>
    %dw = graph.matmul %r, %dy {transpose_a} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    graph.accumulate @w.grad.0, %dw : tensor<8x8xf32>
    return
  }
  func.func @micro_batch(%x: tensor<4x16xf32> {graph.name = "x"}, %dy: tensor<8x8xf32> {graph.name = "seed", graph.seed}) -> (tensor<8x8xf32> {graph.name = "loss"}) {
    %y, %a = graph.run @block0.F(%x) : (tensor<4x16xf32>) -> (tensor<8x8xf32>, tensor<8x16xf32>)
    %z, %v, %e = graph.run @block1.F(%y) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x16xf32>, tensor<8x8xf32>)
    graph.run @block2.W(%dy, %v) : (tensor<8x8xf32>, tensor<4x16xf32>) -> ()
    graph.run @block1.W(%dy, %e) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
    graph.run @block0.W(%dy, %a) : (tensor<8x8xf32>, tensor<8x16xf32>) -> ()
    return %z : tensor<8x8xf32>
  }
}

// -----

// What the input gradients' phase makes again is handed to the weight gradients' phase, but not its views: two results would have the same bytes.
module attributes {dsopt.options = {dp = 1 : i64}} {
  graph.parameter @w : tensor<16x4xf32> from "m" at 0 bytes 256
  graph.state @w.grad.0 : tensor<16x4xf32> gradient of @w block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0

  func.func private @block0.F(%x: tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x16xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w : tensor<16x4xf32>
    %e = graph.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %v = graph.reshape %e : (tensor<8x8xf32>) -> tensor<4x16xf32>
    %t = graph.tanh %v : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %r = graph.reshape %t : (tensor<4x16xf32>) -> tensor<8x8xf32>
    %y = graph.matmul %t, %w : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    return %y, %e, %r, %t : tensor<4x4xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x16xf32>
  }
  // CHECK-LABEL: func.func private @block0.B
  // CHECK: %[[T:.*]] = graph.tanh
  // CHECK: return %{{.*}}, %[[T]] : tensor<8x8xf32>, tensor<4x16xf32>
  func.func private @block0.B(%dy: tensor<8x8xf32>, %e: tensor<8x8xf32>, %r: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>} {
    %a = graph.mul %dy, %e : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %dx = graph.mul %a, %r : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %dx : tensor<8x8xf32>
  }
  // CHECK-LABEL: func.func private @block0.W
  // CHECK-SAME: (%{{.*}}: tensor<4x4xf32>, %[[T:.*]]: tensor<4x16xf32>)
  // CHECK: %[[R:.*]] = graph.reshape %[[T]]
  // CHECK: %[[S:.*]] = graph.reshape %[[R]]
  // CHECK: graph.mul %[[S]], %[[T]]
  func.func private @block0.W(%dy: tensor<4x4xf32>, %r: tensor<8x8xf32>, %t: tensor<4x16xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    %s = graph.reshape %r : (tensor<8x8xf32>) -> tensor<4x16xf32>
    %q = graph.mul %s, %t : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %dw = graph.matmul %q, %dy {transpose_a} : (tensor<4x16xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
    graph.accumulate @w.grad.0, %dw : tensor<16x4xf32>
    return
  }
  func.func @micro_batch(%x: tensor<8x8xf32> {graph.name = "x"}, %dx: tensor<8x8xf32> {graph.name = "dx"}, %dy: tensor<4x4xf32> {graph.name = "seed", graph.seed}) -> (tensor<4x4xf32> {graph.name = "loss"}) {
    %y, %e, %r, %t = graph.run @block0.F(%x) : (tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x16xf32>)
    %g = graph.run @block0.B(%dx, %e, %r) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    graph.run @block0.W(%dy, %r, %t) : (tensor<4x4xf32>, tensor<8x8xf32>, tensor<4x16xf32>) -> ()
    return %y : tensor<4x4xf32>
  }
}
