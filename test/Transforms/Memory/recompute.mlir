// What backward reads of forward is made there again where that keeps fewer bytes; what it is made of is kept.
// RUN: dsopt-opt %s -recompute=mode=full | FileCheck %s
// RUN: dsopt-opt %s -recompute=mode=none | FileCheck %s --check-prefix=NONE
// RUN: dsopt-opt %s -recompute=mode=full -recompute=mode=full | FileCheck %s
// Without a budget there is no reason to.
// RUN: dsopt-opt %s -recompute=mode=auto | FileCheck %s --check-prefix=NONE

// NONE-LABEL: func.func private @block0.F
// NONE: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w : tensor<64x256xf32> from "m" at 0 bytes 65536
  graph.parameter @v : tensor<256x64xf32> from "m" at 65536 bytes 65536
  graph.state @w.grad.0 : tensor<64x256xf32> gradient of @w block 0
  graph.state @v.grad.0 : tensor<256x64xf32> gradient of @v block 0
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 16384>, #dist.range<@v, 16384, 16384>] elements 32768 padded 32768 over [edp, ep, sp] zero 3

  // Its input is as small as any cut, and it is there: all of it runs again, products too. Nothing else is returned.
  // CHECK-LABEL: func.func private @block0.F
  // CHECK-NOT: graph.exp
  // CHECK: return %{{[0-9]+}} : tensor<8x64xf32>
  func.func private @block0.F(%x: tensor<8x64xf32>, %w: tensor<64x256xf32>, %v: tensor<256x64xf32>) -> (tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %a = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    %h = graph.tanh %a : (tensor<8x256xf32>) -> tensor<8x256xf32>
    %y = graph.matmul %h, %v : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
    %e = graph.exp %y : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %y, %h, %e : tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>
  }

  // The weight of the first product is gathered for it, with that which is there already; B makes tanh before its first
  // use, and hands it to W.
  // CHECK-LABEL: func.func private @block0.B
  // CHECK-SAME: (%[[DY:.*]]: tensor<8x64xf32>, %[[V:.*]]: tensor<256x64xf32>, %[[X:.*]]: tensor<8x64xf32>, %[[W:.*]]: tensor<64x256xf32>) -> (tensor<8x256xf32>, tensor<8x256xf32>)
  // CHECK: %[[DH:.*]] = graph.matmul %[[DY]], %[[V]] {transpose_b}
  // CHECK: %[[A:.*]] = graph.matmul %[[X]], %[[W]] :
  // CHECK: %[[H:.*]] = graph.tanh %[[A]]
  // CHECK: %[[DA:.*]] = graph.mul %[[DH]], %[[H]]
  // CHECK: return %[[DA]], %[[H]]
  func.func private @block0.B(%dy: tensor<8x64xf32>, %v: tensor<256x64xf32>, %h: tensor<8x256xf32>) -> tensor<8x256xf32> attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>} {
    %dh = graph.matmul %dy, %v {transpose_b} : (tensor<8x64xf32>, tensor<256x64xf32>) -> tensor<8x256xf32>
    %da = graph.mul %dh, %h : (tensor<8x256xf32>, tensor<8x256xf32>) -> tensor<8x256xf32>
    return %da : tensor<8x256xf32>
  }
  func.func private @block0.W(%h: tensor<8x256xf32>, %dy: tensor<8x64xf32>, %da: tensor<8x256xf32>, %x: tensor<8x64xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    %dv = graph.matmul %h, %dy {transpose_a} : (tensor<8x256xf32>, tensor<8x64xf32>) -> tensor<256x64xf32>
    graph.accumulate @v.grad.0, %dv : tensor<256x64xf32>
    %dw = graph.matmul %x, %da {transpose_a} : (tensor<8x64xf32>, tensor<8x256xf32>) -> tensor<64x256xf32>
    graph.accumulate @w.grad.0, %dw : tensor<64x256xf32>
    return
  }

  // CHECK-LABEL: func.func @micro_batch
  // CHECK: %[[Y:.*]] = graph.run @block0.F(
  // CHECK-NEXT: dist.release
  // CHECK-NEXT: %[[GV:.*]], %[[GW:.*]] = dist.gather @b0 [@v, @w] over [edp, ep, sp]
  // CHECK-NEXT: %[[B:.*]]:2 = graph.run @block0.B(%{{.*}}, %[[GV]], %{{.*}}, %[[GW]])
  // CHECK-NEXT: dist.release %[[GV]], %[[GW]]
  // CHECK-NEXT: graph.run @block0.W(%{{.*}}, %[[B]]#0, %{{.*}}, %[[B]]#1)
  func.func @micro_batch(%x: tensor<8x64xf32> {graph.name = "x"}, %dy: tensor<8x64xf32> {graph.name = "seed", graph.seed}) -> (tensor<8x64xf32> {graph.name = "loss"}) {
    %w, %v = dist.gather @b0 [@w, @v] over [edp, ep, sp] : tensor<64x256xf32>, tensor<256x64xf32>
    %f:3 = graph.run @block0.F(%x, %w, %v) : (tensor<8x64xf32>, tensor<64x256xf32>, tensor<256x64xf32>) -> (tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>)
    dist.release %w, %v : tensor<64x256xf32>, tensor<256x64xf32>
    %v2 = dist.gather @b0 [@v] over [edp, ep, sp] : tensor<256x64xf32>
    %b = graph.run @block0.B(%dy, %v2, %f#1) : (tensor<8x64xf32>, tensor<256x64xf32>, tensor<8x256xf32>) -> tensor<8x256xf32>
    dist.release %v2 : tensor<256x64xf32>
    graph.run @block0.W(%f#1, %dy, %b, %x) : (tensor<8x256xf32>, tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>) -> ()
    dist.reduce @b0 use 0 of [@w.grad.0, @v.grad.0] over [edp, ep, sp] as f32
    return %f#0 : tensor<8x64xf32>
  }
}
